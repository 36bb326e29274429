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

# What std::thread runs is what its group is called.
thread_names() {
	local program=$LONGPOLE_BUILD/tests/target/cxx_names scratch group
	if [[ ! -x $program ]]; then
		echo "skip thread_names: cxx_names was not built"
		return
	fi
	scratch=$(mktemp -d)
	# shellcheck disable=SC2064 # the directory's name as it is now
	trap "rm -rf '$scratch'" RETURN
	if ! "$LONGPOLE" record -o "$scratch/trace.lpt" -- "$program" >"$scratch/out" 2>&1 ||
		! "$LONGPOLE" export --format=perfetto -o "$scratch/names" "$scratch/trace.lpt" >"$scratch/out" 2>&1; then
		echo "not ok thread_names: $(tail -n 1 "$scratch/out")"
		return 1
	fi
	for group in 'plain_function()' 'with_arguments(int, double, char const*)' 'never_throws()' 'void (server::*)(int)' \
		functor 'main::{lambda()#1}' 'main::{lambda(int)#2}'; do
		if ! grep -qaF "$group" "$scratch/names"; then
			echo "not ok thread_names: no group $group"
			return 1
		fi
	done
	echo 'ok thread_names'
}
status=0
if (($# == 0)) || [[ " $* " == *' thread_names '* ]]; then
	thread_names || status=1
fi
if ((!$#)) || [[ " $* " == *' coach '* ]]; then
	python3 "$here/coached.py" || status=1
fi
if ((!$#)) || [[ " $* " == *' deadlock_ahead'* ]]; then
	python3 "$here/deadlock_ahead.py" "$@" || status=1
fi
if [[ $* != coach && $* != thread_names && $* != deadlock_ahead* ]]; then
	python3 "$here/known_answers.py" "$@" || status=1
	python3 "$here/system_answers.py" "$@" || status=1
fi
exit "$status"
