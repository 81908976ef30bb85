# SPDX-License-Identifier: MIT
"""An installed tree finds its own library and programs, wherever it was put."""
import glob
import os
import subprocess
import sys
import tempfile
import unittest

from case import ROOT, Case, gpreempt

BUILD, PLACE = os.environ['BUILD'], os.environ['PYTHON_DIR']
ASK = '''
import gpreempt
print(gpreempt.__version__)
print(gpreempt.library())
print(gpreempt.snapshot(1001, 'model').ids())
with gpreempt.Server() as server:
    print(server.connect().status().version)
'''


class Installed(Case):
    def test_what_is_installed_works_by_itself(self):
        if not PLACE or PLACE.endswith('/none'):
            self.skipTest('this build installs no Python package')
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(['meson', 'install', '-C', BUILD, '--no-rebuild', '--quiet',
                            '--destdir', folder], check=True, stdout=subprocess.DEVNULL)
            place = folder + PLACE
            here = {os.path.basename(p) for p in glob.glob(os.path.join(
                ROOT, 'python', 'gpreempt', '*')) if p.endswith(('.py', '.typed'))}
            self.assertEqual(set(os.listdir(os.path.join(place, 'gpreempt'))), here)
            env = {k: v for k, v in os.environ.items() if not k.startswith('GPREEMPT')}
            done = subprocess.run([sys.executable, '-c', ASK], stdout=subprocess.PIPE, text=True,
                                  check=True, env=dict(env, PYTHONPATH=place))
            version, library, ids, daemon = done.stdout.splitlines()
            self.assertEqual((version, daemon), (os.environ['VERSION'],) * 2)
            self.assertTrue(library.startswith(folder + '/'), library)
            self.assertEqual(ids, str(list(range(10))))

    def test_the_source_tree_knows_its_version(self):
        self.assertEqual(gpreempt.__version__, os.environ['VERSION'])


if __name__ == '__main__':
    unittest.main()
