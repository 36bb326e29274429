# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # run.sh's
# mpi_network.sh - another network under MPI: predicted from one run on a simulated network, and made true by the simulation of the other.

# network_becomes RANKS 'L O G' 'L O G' EDIT... - the run's length on the second network is in the interval predicted from the first, and the answer within a tenth.
network_becomes() {
	local gen=$LONGPOLE_BUILD/src/trace/lpt-gen-network ranks=$1 before=$2 after=$3 was is
	shift 3
	# shellcheck disable=SC2086 # three numbers
	was=$("$gen" was.lpt "$ranks" 24 $before) && is=$("$gen" is.lpt "$ranks" 24 $after) || fail "lpt-gen-network"
	longpole whatif --json was.lpt "$@" >whatif.json 2>err || { cat err >&2; fail "$*: no answer"; }
	jq -e --argjson was "$was" --argjson is "$is" '.result.elapsed_ns == $was and (.result.scenarios[0].best | ($was / $is) as $true |
		.predicted_speedup_low <= $true and $true <= .predicted_speedup_high and (.predicted_speedup / $true - 1 | fabs) < 0.1)' whatif.json >/dev/null ||
		fail "$ranks ranks, $before to $after: $was ns became $is ns, predicted $(jq -c '.result.scenarios[0].best' whatif.json)"
}

test_whatif_mpi_network() {
	network_becomes 4 '5000 500 100' '2500 500 100' link-latency MPI=-50%
	network_becomes 4 '5000 500 100' '0 500 100' link-latency MPI=-100%
	network_becomes 4 '5000 500 100' '5000 500 50' link-rate MPI=x2
	network_becomes 4 '5000 500 100' '2500 500 50' link-latency MPI=-50% link-rate MPI=x2
	network_becomes 8 '2000 300 1000' '2000 300 500' link-rate MPI=x2
	network_becomes 8 '2000 300 1000' '2000 300 100' link-rate 'communication in MPI_COMM_WORLD'=x10
	network_becomes 16 '20000 1000 300' '10000 1000 300' link-latency MPI=-50%
}

# What the fit does not tell is not predicted.
test_whatif_mpi_network_refused() {
	local gen=$LONGPOLE_BUILD/src/trace/lpt-gen-network
	"$gen" several.lpt 4 12 5000 500 100 >out || fail "lpt-gen-network"
	expect 2 longpole whatif several.lpt link-latency MPI=+50%
	has err 'that is a slower network'
	expect 2 longpole whatif several.lpt link-rate MPI=-50%
	has err 'that is a slower network'
	expect 2 longpole whatif several.lpt link-latency nowhere=-50%
	has err 'no link of this trace matches; a link is MPI, a communicator'
	"$gen" flat.lpt 4 12 5000 500 0 >out || fail "lpt-gen-network"
	expect 2 longpole whatif flat.lpt link-rate MPI=x2
	has err 'their size made no difference to messages'
	mkdir ranks
	"$LONGPOLE_BUILD/src/trace/lpt-gen-ranks" ranks 4 6 || fail "lpt-gen-ranks"
	expect 0 longpole merge -q -o one.lpt ranks
	expect 2 longpole whatif one.lpt link-latency MPI=-50%
	has err 'have one size, which does not tell latency from rate'
}
