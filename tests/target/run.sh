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

# Without what a loop does in its period it takes as long as before: 1.67 times faster is what a deadline that moves would say.
periodic() {
	local how scratch gain bad=0
	scratch=$(mktemp -d)
	for how in deadline rest read poll epoll; do
		"$LONGPOLE" record -o "$scratch/$how.lpt" -- "$LONGPOLE_BUILD/tests/target/periodic" "$how" >"$scratch/out" 2>&1 &&
			"$LONGPOLE" whatif --json "$scratch/$how.lpt" scale part=-100% >"$scratch/json" 2>"$scratch/out" &&
			gain=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["result"]["scenarios"][0]["best"]["predicted_speedup"])' "$scratch/json") || {
			echo "not ok periodic-$how: $(tail -n 1 "$scratch/out")"
			bad=1
			continue
		}
		if [[ $(python3 -c 'import sys; print(0.98 < float(sys.argv[1]) < 1.25)' "$gain") == True ]]; then
			echo "ok periodic-$how"
		else
			echo "not ok periodic-$how: without part() it is said to be $gain times as fast"
			bad=1
		fi
	done
	rm -rf "$scratch"
	return "$bad"
}
status=0
if (($# == 0)) || [[ " $* " == *' thread_names '* ]]; then
	thread_names || status=1
fi
if (($# == 0)) || [[ " $* " == *' periodic '* ]]; then
	periodic || status=1
fi
if ((!$#)) || [[ " $* " == *' coach '* ]]; then
	python3 "$here/coached.py" || status=1
fi
if ((!$#)) || [[ " $* " == *' deadlock_ahead'* ]]; then
	python3 "$here/deadlock_ahead.py" "$@" || status=1
fi
if [[ $* != coach && $* != thread_names && $* != periodic && $* != deadlock_ahead* ]]; then
	python3 "$here/known_answers.py" "$@" || status=1
	python3 "$here/system_answers.py" "$@" || status=1
fi
exit "$status"
