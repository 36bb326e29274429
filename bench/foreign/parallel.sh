#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# parallel.sh DIRECTORY SECONDS JOBS - GNU parallel, two jobs at a time, each of which sleeps.
set -eu
seq "$3" | HOME=$1 parallel --will-cite -j 2 "sleep $2; true {}"
