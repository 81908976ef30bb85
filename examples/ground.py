# SPDX-License-Identifier: MIT
"""Where the examples run: on a GPU through PyTorch where both are there, else on the software
device of a gpreemptd, which is started for them if none runs."""
import argparse
import contextlib
import json
import os
import sys

with contextlib.suppress(ImportError):
    import gpreempt
if 'gpreempt' not in sys.modules:  # not installed: out of this source tree
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'python'))
import gpreempt
from gpreempt import jobs, software


def torch_with_gpu():
    """PyTorch, if it is there and sees a GPU."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def class_myself(job_class, socket):
    """Tells the daemon what we are; without one, or without the right, we run all the same."""
    try:
        with gpreempt.connect(socket) as daemon:
            daemon.set_class(os.getpid(), job_class, critical=job_class == 'online')
    except gpreempt.Error as e:
        print(f'# not classed as {job_class}: {e}', file=sys.stderr)


@contextlib.contextmanager
def software_device(socket):
    """The control socket of a gpreemptd with a software device: the one named, or one's own."""
    path = socket or os.environ.get('GPREEMPT_SOCKET')
    if path or os.path.exists(software.device_socket()):
        yield path or software.CONTROL
        return
    with gpreempt.Server('model') as server:
        print(f'# no daemon: a software device of its own, for others: --socket {server.socket}',
              file=sys.stderr)
        yield server.socket


def run(online, description, with_torch):
    """The example as a program: until Ctrl-C, SIGTERM or its end, then one JSON object."""
    ending = jobs.listen()
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('--software', action='store_true',
                        help='on the software device, also where there is a GPU')
    jobs.add_options(parser, online)
    args = parser.parse_args()
    if args.name:
        jobs.set_name(args.name)
    job_class = 'online' if online else 'offline'
    torch = None if args.software else torch_with_gpu()
    try:
        if torch:
            class_myself(job_class, args.socket)
            report = with_torch(torch, args, ending)
        else:
            with software_device(args.socket) as socket:
                class_myself(job_class, socket)
                report = jobs.run(jobs.plan_of(args, online), ending,
                                  software.device_socket(socket))
    except gpreempt.Error as e:
        print(f'{parser.prog}: {e.message}\n  hint: {e.hint}', file=sys.stderr)
        return e.code
    print(json.dumps(report), flush=True)
    return 0
