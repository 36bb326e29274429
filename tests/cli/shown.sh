# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # $work comes from run.sh
# shown.sh - names of a trace that a terminal would obey, or that read as what they are not: none reaches an answer as it is.

# Written as \u escapes, so that nobody's editor shows this file wrongly: C1 (CSI, OSC), directions, ends of lines, isolates, tags.
hostile='a\u009b31mb\u009d0;t\u0007c\u202ed\u2066e\u2028f\u2029g\u200eh\u061ci\udb40\udc01j'

# shown FILE - neither one of these, nor a byte that is no UTF-8
shown() {
	python3 - "$1" <<-'END' || fail "$1, of '$asked', holds what may not be shown"
		import sys
		data = open(sys.argv[1], "rb").read()
		hidden = {*range(0x20), *range(0x7f, 0xa0), 0x61c, 0x200e, 0x200f, *range(0x2028, 0x202f), *range(0x2066, 0x2070), 0xe0001}
		bad = [(i, hex(ord(c))) for i, c in enumerate(data.decode("utf-8", "surrogateescape"))
		       if (ord(c) in hidden and c not in "\n\t\r") or 0xdc80 <= ord(c) <= 0xdcff]
		sys.exit(f"{bad[:8]}" if bad else 0)
	END
}

# all_answers TRACE - each command that reads a trace, as text and as JSON
all_answers() {
	local asked nr=0
	while read -r asked; do
		# shellcheck disable=SC2086 # words
		longpole $asked "$1" >out 2>err </dev/null
		shown out
		shown err
		case $asked in
		*--json*) [[ ! -s out ]] || jq -e . out >/dev/null || fail "'$asked' is no JSON" ;;
		esac
		[[ ! -s out ]] || nr=$((nr + 1))
	done <<-END
		dump -d
		dump -d --json
		dump --stats
		report
		report --json
		report --full
		path
		path --json
		queues
		queues --json
		poles
		poles --json
		locks
		locks --json
		loops
		loops --json
		connections
		connections --json
		graph
		graph --json
		graph -f dot
		graph -f text
		graph -f dot --view=states
		actors
		actors --json
		coach
		coach --json
		top
		top --json
		report --html=/dev/stdout
		view -o /dev/stdout
		export -f collapsed -o -
		export -f csv -o -
		export -f chrome -o -
		export -f speedscope -o -
		export -f firefox -o -
		export -f otlp -o -
		export -f sarif -o -
		whatif scale .=-50%
	END
	((nr >= 20)) || fail "only $nr answers"
}

test_shown_names_of_an_import() {
	printf '[{"name":"process_name","ph":"M","pid":1,"args":{"name":"p%s"}},
		{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"t%s"}},
		{"name":"%s","ph":"X","pid":1,"tid":1,"ts":0,"dur":1000},
		{"name":"w%s","cat":"%s","ph":"X","pid":1,"tid":1,"ts":1000,"dur":3000}]' "$hostile" "$hostile" "$hostile" "$hostile" "$hostile" >a.json
	expect 0 longpole import chrome -o a.lpt a.json
	all_answers a.lpt
}

test_shown_names_of_a_recording() {
	local raw name
	raw=$(jq -rn "\"$hostile\"")$'\x9b31m\xe2\x80'
	# shellcheck disable=SC2016 # of the recorded shell
	expect 0 longpole record -q -o "a.lpt" -- bash -c 'printf %s "$1" >/proc/self/comm; true | cat; read -t 0.01 </dev/zero; exit 0' "$raw" $'\xe2\x80\xae\x9b'"$raw"
	all_answers a.lpt
	name=$(longpole dump -d --json a.lpt | jq -r 'select(.kind == "string") | .text' | grep -c a)
	((name > 0)) || fail "no name is in the trace"
}
