#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh [NAME...] - programs with known answers; `./dev check` runs it. Needs LONGPOLE and LONGPOLE_BUILD, or ./dev build before.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
export LONGPOLE_SOURCE=${LONGPOLE_SOURCE:-$(readlink -f "$here/../..")}
export LONGPOLE_BUILD=${LONGPOLE_BUILD:-$LONGPOLE_SOURCE/build}
if [[ -z ${LONGPOLE:-} ]]; then
	LONGPOLE=$LONGPOLE_BUILD/src/cmd/longpole
fi
export LONGPOLE
if [[ ! -x $LONGPOLE ]]; then
	echo "not ok known_answers: no longpole in $LONGPOLE_BUILD; run ./dev build"
	exit 1
fi
status=0
if ((!$#)) || [[ " $* " == *' coach '* ]]; then
	python3 "$here/coached.py" || status=1
fi
if [[ $* != coach ]]; then
	python3 "$here/known_answers.py" "$@" || status=1
fi
exit $status
