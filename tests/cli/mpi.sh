# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # run.sh's
# mpi.sh - MPI programs whose answer is known (mpi_ranks.c), below one recorded launcher, by each MPI that is installed.

# mpi_each FUNCTION - with $mpi the library and mpirun[] its launcher; without any the test is skipped.
mpi_each() {
	local found=
	for mpi in openmpi mpich; do
		if ! command -v mpicc.$mpi mpirun.$mpi >/dev/null; then continue; fi
		mpirun=("mpirun.$mpi")
		[[ $mpi == mpich ]] || mpirun+=(--allow-run-as-root --oversubscribe --mca plm isolated)
		mpicc.$mpi -O1 -g -w "$LONGPOLE_SOURCE/tests/cli/mpi_ranks.c" -o mpi_ranks || fail "mpicc.$mpi cannot compile mpi_ranks.c"
		mpi_run 2 ./mpi_ranks barrier 1 1000 >out 2>err || { echo "mpirun.$mpi cannot start here: $(tail -1 err)"; continue; }
		found=1
		"$1"
	done
	[[ $found ]] || skip "no MPI that starts here (Debian packages openmpi-bin libopenmpi-dev, mpich libmpich-dev)"
}
# mpi_ranks_of N - so many, or 2: MPICH's ranks spin without giving way, and with more of them than processors the answer is another.
mpi_ranks_of() { [[ $mpi == openmpi || $(nproc) -gt $1 ]] && echo "$1" || echo 2; }
# mpi_run RANKS COMMAND...
mpi_run() { timeout 100 "${mpirun[@]}" -n "$@"; }
# mpi_record TRACE RANKS MODE [ROUNDS [SLOW_US]]
mpi_record() {
	local to=$1 ranks=$2
	shift 2
	timeout 100 longpole record -q -o "$to" -- "${mpirun[@]}" -n "$ranks" ./mpi_ranks "$@" >out 2>err ||
		{ cat err >&2; fail "$mpi: $*: recording failed"; }
}

# mpi_says FILE RANK - of what the program itself does on the path, slow_work in that rank is first, and next to nothing is waiting for messages.
mpi_says() {
	is_json "$1" '.result.explained_share > 0.95'
	jq -e --arg who "mpi_ranks rank $2" '[.result.path[] | select(.kind == "run" or .kind == "wait" or .kind == "sleep") |
		select(.state | test("ing MPI \\(MPI_(Init|Finalize)") | not)][0] | (.where | contains("slow_work")) and (.actor | contains($who))' "$1" >/dev/null ||
		{ jq -c '.result.path[:7][] | [.state, .where, .actor, .share]' "$1" >&2; fail "$mpi: $1: the first is not slow_work of rank $2"; }
	# (a rank that spins may keep another one from its processor: then its wait is on the path for that)
	jq -e '[.result.path[] | select(.state | startswith("waiting for a message") or startswith("waiting at MPI")) | .share] | add // 0 | . < 0.25' "$1" >/dev/null ||
		fail "$mpi: $1: waits of MPI's are on the path"
}

# mpi_blames MODE RANKS - slow_work of rank 1. (How long the ranks wait for processors, and MPI needs to start, is the machine's.)
mpi_blames() {
	mpi_record "$1.lpt" "$2" "$1" 60 10000 sleep
	longpole report --json "$1.lpt" >"$1.json" || fail "$mpi: $1: no report"
	mpi_says "$1.json" 1
}

mpi_known() {
	mpi_blames late_sender 2
	mpi_blames wildcard 2
	mpi_blames late_receiver 2
	mpi_blames allreduce "$(mpi_ranks_of 4)"
	mpi_blames barrier "$(mpi_ranks_of 4)"
	mpi_blames alltoall "$(mpi_ranks_of 3)"
	mpi_blames ring "$(mpi_ranks_of 3)"
	mpi_blames halo "$(mpi_ranks_of 4)"
	mpi_blames persistent "$(mpi_ranks_of 3)"
	mpi_blames reduce "$(mpi_ranks_of 3)"
	mpi_blames bcast "$(mpi_ranks_of 3)"
	mpi_blames window "$(mpi_ranks_of 3)"
	mpi_blames overlap "$(mpi_ranks_of 3)"
	mpi_blames cancel 2
	mpi_blames scan "$(mpi_ranks_of 3)"
	mpi_blames neighbors "$(mpi_ranks_of 3)"
	mpi_blames late_post 2
	mpi_blames late_complete 2
	mpi_blames lock 2
	mpi_blames file 2
	[[ $(mpi_ranks_of 4) == 2 ]] || mpi_blames split 4
}
test_mpi_known_answers() { mpi_each mpi_known; }

# A loop of calls that find nothing is a wait, and few records; what a program does between two looks is its own.
mpi_looks() {
	local mode
	for mode in polls polls_in_turn polls_status probe matched_probe; do
		mpi_blames $mode 2
		longpole dump $mode.lpt | grep -c ' mpi_' >records || true
		(($(cat records) < 60 * 30)) || fail "$mpi: $mode: $(cat records) records of MPI in 60 rounds"
	done
	longpole messages --json polls.lpt >matrix.json || fail "$mpi: no matrix"
	is_json matrix.json '.result.ways[0] | .from == "1" and .to == "0" and .messages == 60 and .late_senders >= 20 and .late_senders_ns > 20e6'
	mpi_record works_between.lpt 2 works_between 20 20000
	longpole report --json works_between.lpt >between.json || fail "$mpi: works_between: no report"
	# (the path is rank 0's own: it never waits)
	is_json between.json '[.result.path[] | select(.state | contains("MPI_Test")) | .share] | add // 0 | . < 0.02'
	longpole dump works_between.lpt >between.txt
	if grep -q 'mpi_wait.*MPI_Test' between.txt; then fail "$mpi: work between two looks is told as a wait"; fi
}
test_mpi_looks() { mpi_each mpi_looks; }

# Ranks that a job starts are a world of their own, and the answer is the whole run's.
mpi_spawn() {
	mpi_run 2 ./mpi_ranks spawns 1 >out 2>err || { echo "$mpi cannot start ranks here: $(tail -n 1 err)"; return; }
	mpi_record spawns.lpt 2 spawns 1
	longpole report --json spawns.lpt >spawns.json || fail "$mpi: spawns: no report"
	is_json spawns.json '(.trace.mpi | length) == 2 and all(.trace.mpi[]; .ranks == 2 and .recorded == 2)'
}
test_mpi_spawn() { mpi_each mpi_spawn; }

# mpi_joins MODE RANKS - each rank recorded for itself, as on many machines: merged, the answer is that of one recording.
mpi_joins() {
	rm -f -- *.lpt
	mpi_run "$2" longpole record -q -o 'own.%r.lpt' ./mpi_ranks "$1" 60 10000 sleep >out 2>err || { cat err >&2; fail "$mpi: $1: recording failed"; }
	expect 0 longpole merge --json -o all.lpt own.?.lpt
	is_json out ".result | (.inputs | length) == $2 and .hosts == 1 and .communicators >= 1 and (.inputs | map(.message_pairs) | add >= 2)"
	longpole report --json all.lpt >joined.json || fail "$mpi: $1: no report"
	mpi_says joined.json 1
	is_json joined.json ".result | .elapsed_ns > 0"
}
mpi_alone() {
	mpi_joins late_sender 2
	mpi_joins ring "$(mpi_ranks_of 3)"
	mpi_joins split 2
	mpi_joins window 2
	mpi_joins allreduce "$(mpi_ranks_of 4)"
	# without a name each rank has a file of its own, and one file is never two recordings'
	mpi_run 2 longpole record -q ./mpi_ranks barrier 2 1000 >out 2>err || fail "$mpi: without -o"
	[[ -s longpole-mpi_ranks.rank-0.lpt && -s longpole-mpi_ranks.rank-1.lpt ]] || fail "$mpi: $(ls)"
	# (what mpirun does when a rank does not start is its own business: MPICH's may wait for ever, or say that all is well)
	timeout 20 "${mpirun[@]}" -n 2 longpole record -q -o same.lpt ./mpi_ranks barrier 100 1000 >out 2>err || true
	has err 'same.lpt is being written by another process' "-o 'app.%r.lpt'"
}
test_mpi_ranks_recorded_alone() { mpi_each mpi_alone; }

# A directory of ranks' traces is one trace; what is not in it is said.
mpi_directory() {
	local ranks
	ranks=$(mpi_ranks_of 3)
	rm -rf run other && mkdir run other
	mpi_run "$ranks" longpole record -q -o 'run/own.%r.lpt' ./mpi_ranks allreduce 30 10000 sleep >out 2>err || { cat err >&2; fail "$mpi: recording failed"; }
	cp run/own.0.lpt other/first.lpt
	longpole report --json run >whole.json 2>err || fail "$mpi: no report of a directory"
	has err "joined $ranks traces of run in run/merged.lpt (clock error at most "
	mpi_says whole.json 1
	is_json whole.json ".trace.mpi == [{ranks: $ranks, recorded: $ranks, missing: \"\", unfinished: \"\", first_ended: null, ended: \"\"}]"
	expect 0 longpole merge --json -o all.lpt run
	is_json out "[.result.inputs[] | .rank] == [range($ranks)] and all(.result.inputs[]; .ranks == $ranks and .job == 1)"
	# what the others wait for is not seen without its rank, and is a wait
	rm run/own.1.lpt
	expect 0 longpole record -q -o run/other.lpt true
	longpole report --json run >part.json 2>err || fail "$mpi: no report of a part"
	has err 'run/other.lpt is left out: no rank of MPI is in it'
	is_json part.json ".trace.mpi[0] | .missing == \"rank 1 of $ranks has no trace: what it held up is not seen\" and .recorded == $ranks - 1"
	is_json part.json '[.result.path[] | select(.state | startswith("waiting at MPI_Allreduce")) | .unexplained_ns] | add > 150e6'
	longpole report run 2>err >part.txt || fail "$mpi: no report of a part"
	has part.txt "rank 1 of $ranks has no trace: what it held up is not seen"
	longpole queues run 2>err >part.txt || fail "$mpi: no queues of a part"
	has part.txt "rank 1 of $ranks has no trace: what it held up is not seen"
	# two jobs are no run
	mpi_run 2 longpole record -q -o 'other/own.%r.lpt' ./mpi_ranks barrier 2 1000 >out 2>err || fail "$mpi: recording failed"
	expect 2 longpole report other
	has err 'are of different MPI jobs'
	rm other/*
	expect 2 longpole report other
	has err 'no trace of an MPI rank is in it'
}
test_mpi_directory() { mpi_each mpi_directory; }

# mpi_ends MODE TEXT - rank 1 ends badly: who, and how. Each rank has its own recorder, which sees how it ends.
mpi_ends() {
	rm -rf ended && mkdir ended
	mpi_run 2 longpole record -q -o 'ended/own.%r.lpt' ./mpi_ranks "$1" 10 10000 sleep >out 2>err || true
	longpole report --json ended >ended.json 2>err || fail "$mpi: $1: no report"
	jq -e --arg text "$2" '.trace.mpi[0] | .first_ended == 1 and (.ended | startswith("rank 1 of 2 " + $text))' ended.json >/dev/null ||
		{ jq -c .trace.mpi ended.json >&2; fail "$mpi: $1: not said how rank 1 ended"; }
}
mpi_ended() {
	mpi_ends crashes 'was ended by SIGSEGV, '
	mpi_ends killed 'was ended by SIGKILL, '
	mpi_ends leaves 'ended without MPI_Finalize, with status 4, '
	timeout 100 longpole record -q -o aborts.lpt -- "${mpirun[@]}" -n 2 ./mpi_ranks aborts 10 10000 sleep >out 2>err || true
	longpole report --json aborts.lpt >aborts.json || fail "$mpi: aborts: no report"
	is_json aborts.json '.trace.mpi[0] | .first_ended == 1 and (.ended | startswith("rank 1 of 2 called MPI_Abort at aborts (mpi_ranks.c:"))'
}
test_mpi_ranks_that_end_badly() { mpi_each mpi_ended; }

test_mpi_rank_of_no_job() {
	expect 125 env -u OMPI_COMM_WORLD_RANK -u PMI_RANK -u SLURM_PROCID longpole record -o 'x.%r.lpt' true
	has err '%r is the rank in an MPI job' 'mpirun -n 4 longpole record'
	expect 0 env OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 longpole record -q -o 'x.%r.lpt' true
	[[ -s x.3.lpt ]] || fail "$(ls)"
	# a shell that Slurm started is rank 0 of 1
	expect 0 env -u OMPI_COMM_WORLD_RANK -u PMI_RANK SLURM_PROCID=0 SLURM_NTASKS=1 longpole record -q true
	[[ -s longpole-true.lpt ]] || fail "$(ls)"
}

# mpi_predicts MODE RANKS - what half of rank 1's work would save in each round, then the program with that change. Others may use the
# machine in one of the two runs: up to three times.
mpi_predicts() {
	local rounds=20 saved before after try
	for try in 1 2 3; do
		mpi_record "$1.lpt" "$2" "$1" $rounds 40000 sleep
		before=$(awk '{ print $2 }' out)
		saved=$(longpole whatif --json "$1.lpt" scale 'sleeping=-50%' |
			jq ".result | .elapsed_ns * (1 - 1 / .scenarios[0].best.predicted_speedup) / 1000 / $rounds") || fail "$mpi: $1: no prediction"
		mpi_run "$2" ./mpi_ranks "$1" $rounds 20000 sleep >out 2>err || fail "$mpi: $1: cannot run"
		after=$(awk '{ print $2 }' out)
		awk -v s="$saved" -v b="$before" -v a="$after" 'BEGIN { x = b - a; exit !(s > 0.75 * x && s < 1.25 * x) }' && return
	done
	fail "$mpi: $1: half of the work saves $saved us a round, it is said; $before us became $after us, at try $try"
}
mpi_changes() {
	mpi_predicts allreduce 2
	mpi_predicts halo 2
}
test_mpi_predict_then_change() { mpi_each mpi_changes; }

# mpi_balances MODE - both ranks take the mean of their work: predicted by each method, then so made (a sleep that others made longer counts twice where it doubles). Rank 1 works 60 ms, rank 0 20.
mpi_balances() {
	local rounds=15 before after try
	for try in 1 2 3; do
		mpi_record "$1.lpt" 2 "$1" $rounds 60000 sleep 20000
		before=$(awk '{ print $2 }' out)
		longpole whatif --json --method=both "$1.lpt" balance sleeping >balance.json || fail "$mpi: $1: no prediction"
		is_json balance.json '.result.scenarios[0].edits[0].balance | .members == 2 and .ranks and (.most | contains("rank 1")) and
			.most_ns > 890e6 and .mean_ns > 0.65 * .most_ns and .mean_ns < 0.7 * .most_ns'
		mpi_run 2 ./mpi_ranks "$1" $rounds 40000 sleep 40000 >out 2>err || fail "$mpi: $1: cannot run"
		after=$(awk '{ print $2 }' out)
		jq -e --argjson b "$before" --argjson a "$after" --argjson n $rounds '.result as $r | $r.scenarios[0] |
			all(.predicted_speedup, .replay.predicted_speedup; $r.elapsed_ns * (1 - 1 / .) / 1000 / $n | . > 0.7 * ($b - $a) and . < 1.25 * ($b - $a))' \
			balance.json >/dev/null && return
	done
	jq -c '.result | .elapsed_ns, (.scenarios[0] | .predicted_speedup, .replay)' balance.json >&2
	fail "$mpi: $1: $before us became $after us, at try $try"
}
mpi_balance() {
	mpi_balances allreduce
	mpi_balances halo
	# of ranks that were recorded each for itself, too
	rm -f -- *.lpt
	mpi_run 2 longpole record -q -o 'own.%r.lpt' ./mpi_ranks allreduce 15 60000 sleep 20000 >out 2>err || fail "$mpi: recording failed"
	longpole merge -o all.lpt own.?.lpt >/dev/null || fail "$mpi: cannot merge"
	longpole whatif --json all.lpt balance sleeping >balance.json || fail "$mpi: no prediction"
	is_json balance.json '.result | .scenarios[0].edits[0].balance as $b | .elapsed_ns * (1 - 1 / .scenarios[0].predicted_speedup) / ($b.most_ns - $b.mean_ns) | . > 0.75 and . < 1.1'
	longpole whatif all.lpt balance sleeping >out || fail "$mpi: no prediction"
	has out '2 ranks spend 6' 'ms each on average, mpi_ranks rank 1 '
	longpole report --json all.lpt >imbalance.json || fail "$mpi: no report"
	is_json imbalance.json '.result.imbalance | .members == 2 and (.most | contains("rank 1")) and .mean_ns > 0.65 * .most_ns and .mean_ns < 0.7 * .most_ns'
	local part
	part=$(jq .result.imbalance.part imbalance.json)
	longpole report all.lpt >out || fail "$mpi: no report"
	has out "Load imbalance in #$part: 2 ranks spend 6"
	longpole whatif --json all.lpt balance "#$part" >numbered.json || fail "$mpi: no prediction by number"
	[[ $(jq .result.scenarios[0].predicted_ns numbered.json) == "$(jq .result.scenarios[0].predicted_ns balance.json)" ]] || fail "$mpi: by its number the part is another"
	expect 2 longpole whatif all.lpt balance nothing_of_it
}
test_mpi_balance_then_change() { mpi_each mpi_balance; }

# The messages and the waits for them are known by construction: 20 rounds, rank 1 works 38 ms longer.
mpi_matrix() {
	mpi_record late_sender.lpt 2 late_sender 20 40000 sleep
	longpole messages --json late_sender.lpt >matrix.json || fail "$mpi: no matrix"
	is_json matrix.json '.result.ways[0] | .from == "1" and .to == "0" and .messages == 20 and .bytes == 80 and .late_senders >= 10 and
		.late_senders_ns > 200e6 and .late_senders_ns < 800e6 and .late_receivers == 0'
	is_json matrix.json '.result | (.ways | length) == 1 and .messages == 20 and .bytes == 80'
	is_json matrix.json '.result.link | .messages >= 10 and .sizes == 1 and .latency_ns > 50 and .latency_ns < 20e6 and .ns_per_byte == 0 and .error >= 0'
	mpi_record late_receiver.lpt 2 late_receiver 20 40000 sleep
	longpole messages --json late_receiver.lpt >matrix.json || fail "$mpi: no matrix"
	is_json matrix.json '.result.ways[0] | .from == "0" and .to == "1" and .messages == 20 and .bytes == 20 * 4194304 and
		.late_receivers >= 10 and .late_receivers_ns > 200e6 and .late_receivers_ns > 2 * .late_senders_ns'
	# in a communicator of its own a rank is called as in the world
	local ranks
	ranks=$(mpi_ranks_of 3)
	mpi_record ring.lpt "$ranks" ring 10 1000 sleep
	longpole messages --json ring.lpt >matrix.json || fail "$mpi: no matrix"
	is_json matrix.json "[.result.ways[] | [.from, .to, .messages, .bytes]] | sort == ([range($ranks) | [tostring, ((. + 1) % $ranks | tostring), 10, 40]] | sort)"
	longpole report messages queues ring.lpt >out || fail "$mpi: no section"
	has out 'receiver waited' "$((10 * ranks)) messages between ranks"
	longpole record -q -o none.lpt -- true
	expect 2 longpole messages none.lpt
	has err 'no rank of MPI is in this trace'
}
test_mpi_matrix() { mpi_each mpi_matrix; }

# What the program says and how it ends is as without us.
mpi_harmless() {
	local status recorded mode
	for mode in aborts nonsense; do
		status=0 recorded=0
		mpi_run 2 ./mpi_ranks $mode >plain.out 2>plain.err || status=$?
		((status)) || fail "$mpi: $mode: it is to fail"
		timeout 100 longpole record -q -o $mode.lpt -- "${mpirun[@]}" -n 2 ./mpi_ranks $mode >recorded.out 2>recorded.err || recorded=$?
		((recorded == status)) || fail "$mpi: $mode: exit status $recorded instead of $status"
		cmp -s plain.out recorded.out || fail "$mpi: $mode: another output"
		longpole report $mode.lpt >/dev/null || fail "$mpi: $mode: no report"
	done
}
test_mpi_harmless() { mpi_each mpi_harmless; }

# A program that asks whether there is an MPI hears the truth: nothing of ours is called so.
test_mpi_is_not_there() {
	local lib=$LONGPOLE_BUILD/src/preload/liblongpole-preload.so
	if nm -D --defined-only "$lib" | grep -E ' P?MPI_| p?mpi_'; then fail 'exports a function of MPI'; fi
	command -v python3 >/dev/null || skip 'no python3'
	expect 0 longpole record -q -o none.lpt -- python3 -c 'import ctypes
try:
    ctypes.CDLL(None).MPI_Init
    print("there")
except AttributeError:
    print("none")'
	[[ $(cat out) == none ]] || fail 'a program finds an MPI that it does not have'
}

# Fortran's interface calls C's: the place is the program's all the same.
mpi_fortran() {
	command -v "mpif90.$mpi" gfortran >/dev/null || return 0
	"mpif90.$mpi" -g "$LONGPOLE_SOURCE/tests/cli/mpi_late.f90" -o mpi_late 2>err || return 0
	timeout 100 longpole record -q -o fortran.lpt -- "${mpirun[@]}" -n 2 ./mpi_late || fail "$mpi: Fortran: recording failed"
	longpole dump fortran.lpt | grep mpi_receive >received
	has received 'mpi_late.f90:21' 'op=7(MPI_Recv)'
	longpole report --json fortran.lpt >fortran.json
	is_json fortran.json '.result.path[0] | (.actor | contains("mpi_late rank 1")) and (.where | contains("mpi_late.f90:18"))'
}
test_mpi_fortran() { mpi_each mpi_fortran; }
