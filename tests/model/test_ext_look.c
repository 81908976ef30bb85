/* SPDX-License-Identifier: MIT */
#include "tests/model/test_ext_rig.h"

int main(void)
{
	return 0;
}
