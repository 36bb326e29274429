#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# waits.sh - a part of run.sh: threads that wait for each other come in the right order, by whatever they wait.
# shellcheck disable=SC2154 # what run.sh has set

# A thread that waits for another comes after what it waited for, and a lock is one thread's at a
# time: known counts, of a trace and while it is made.
waits() {
	local why='' way from counts
	selected waits || return 0
	"$LONGPOLE" cc -w -O1 -o waits "$here/waits.c" -pthread 2>err || why=$(head -n 3 err)
	for way in semaphore timedwait clockwait trywait systemv pipe sockets eventfd readv recv recvmsg msgrcv mq futex once call_once cond cnd late mutex trylock rwlock spin mtx semlock named; do
		[[ -z $why ]] || break
		if [[ $way == mq ]] && { ./waits mq; (($? == 77)); }; then
			continue # no such queues here
		fi
		why=$(record -o waits.lpt -- ./waits $way 3>&1)
		"$LONGPOLE" ciat --json waits.lpt >of.file 2>err || why+=" $(head -n 2 err)"
		timeout 60 "$LONGPOLE" ciat --json -- ./waits $way >/dev/null 2>of.run || why+=" while it is made: $(tail -n 2 of.run)"
		for from in file run; do
			counts=$(jq -r '.result.phases[] | select(.phase == "parallel").all | "\(.raw) \(.war) \(.waw) \(.line_true_sharing_misses)"' of.$from)
			# (a few words more are what main left for its threads; a flag goes both ways; who is late reads what was put, and how many)
			case $way in
			cond | cnd) awk '{ exit !($1 >= 3000 && $1 <= 3020 && $2 == 999 && $3 == 1999) }' <<<"$counts" || why+=" $way, $from: $counts" ;;
			late | once | call_once) awk '{ exit !($1 >= 1001 && $1 <= 1020 && $2 == 0 && $3 == 0) }' <<<"$counts" || why+=" $way, $from: $counts" ;;
			# (the words go both ways, too; the one that finds one changed may be a
			# little faster than the one that was to say so)
			futex) awk '{ exit !($1 >= 2900 && $1 <= 3020 && $2 >= 900 && $2 <= 1100 && $3 >= 3800 && $3 <= 4010) }' <<<"$counts" || why+=" $way, $from: $counts" ;;
			mutex | trylock | rwlock | spin | mtx | semlock | named)
				awk '{ exit !($1 > 20000 && $1 <= 32050 && $2 == 0 && $4 > 2500 && $4 <= 4010) }' <<<"$counts" || why+=" $way, $from: $counts"
				;;
			*) awk '{ exit !($1 >= 1000 && $1 <= 1020 && $2 == 999 && $3 == 0) }' <<<"$counts" || why+=" $way, $from: $counts" ;;
			esac
		done
	done
	result waits "$why"
}
waits

# What C++ has of its own.
waits_cc() {
	local why='' compiler way counts moved
	selected waits_cc || return 0
	for compiler in g++ clang++; do
		if ! "$compiler" -std=c++20 -o waits_cc "$here/waits.cc" -pthread 2>cc.err; then
			echo "skip waits_cc: no $compiler with C++ 20"
			continue
		fi
		LONGPOLE_CXX=$compiler "$LONGPOLE" c++ -std=c++20 -w -O1 -o waits_cc "$here/waits.cc" -pthread 2>cc.err || why+=" does not build: $(head -n 3 cc.err)"
		for way in once guard future latch; do
			[[ -z $why ]] || break 2
			why=$(record -o waits_cc.lpt -- ./waits_cc $way 3>&1)
			"$LONGPOLE" ciat --json waits_cc.lpt >counts.json 2>err || why+=" $(head -n 2 err)"
			counts=$(jq -r '.result.phases[] | select(.phase == "parallel").all | "\(.raw) \(.war)"' counts.json)
			moved=$(jq -r '[.result.objects[] | select(.name | endswith("::line")).true_sharing_misses] | add // 0' counts.json)
			case $way in
			once | guard) awk '{ exit !($1 >= 1000 && $1 <= 1020 && $2 <= 5) }' <<<"$counts" || why+=" $compiler, $way: $counts" ;;
			# (who is not there yet when it is told does not wait, and has no record of it)
			*) ((moved >= 80 && moved <= 100)) || why+=" $compiler, $way: $moved of 100 lines moved" ;;
			esac
		done
	done
	result waits_cc "$why"
}
waits_cc

# The same of OpenMP's.
regions_wait() {
	local why='' compiler way counts said order least
	selected regions_wait || return 0
	for compiler in gcc clang; do
		if ! "$compiler" -fopenmp -o regions_wait "$here/regions_wait.c" 2>cc.err; then
			echo "skip regions_wait: no $compiler with OpenMP"
			continue
		fi
		LONGPOLE_CC=$compiler "$LONGPOLE" cc -w -O1 -fopenmp -o regions_wait "$here/regions_wait.c" 2>cc.err || why+=" does not build: $(head -n 3 cc.err)"
		for way in critical lock test ordered copy task untied group loop depend; do
			[[ -z $why ]] || break 2
			why=$(record -o regions_wait.lpt -- ./regions_wait $way 3>&1 >said)
			if [[ -s said ]]; then # of tasks: lines that move, by which order ever
				read -r said <said
				for order in pseudo time; do
					counts=$("$LONGPOLE" ciat --json --order=$order regions_wait.lpt 2>err | jq -r '[.result.objects[] | {(.name): .true_sharing_misses}] | add | "\(.question // 0) \(.answer // 0)"')
					[[ $counts == "$said" ]] || why+=" $compiler, $way, by $order: $counts lines moved, of $said"
				done
				continue
			fi
			counts=$("$LONGPOLE" ciat --json regions_wait.lpt 2>err |
				jq -r '.result.phases[] | select(.phase == "parallel").all | "\(.raw) \(.war) \(.waw) \(.line_true_sharing_misses)"')
			if [[ $way == copy ]]; then # (clang hands over where it is, too)
				[[ $counts =~ ^(300|600)[0-9]\ (99|199)[0-9]\  ]] || why+=" $compiler, $way: $counts"
			elif [[ $way == ordered ]]; then
				[[ $counts =~ ^79[0-9][0-9]\ 0\ 7992\ 99[0-9]$ ]] || why+=" $compiler, $way: $counts"
			else
				# (who looks again and again comes later by its clock: by how often depends on the recorded run)
				least=1
				[[ $way != test ]] || least=0.4
				awk -v least=$least '{ exit !($1 > 5000 * least && $1 <= 8050 && $2 == 0 && $4 > 600 * least && $4 <= 1010) }' <<<"$counts" || why+=" $compiler, $way: $counts"
			fi
		done
	done
	result regions_wait "$why"
}
regions_wait
