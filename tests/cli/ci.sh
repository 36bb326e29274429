# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# examples/ci: the jobs' own lines, run here for a change that is slower and for one that is not.

# project - a repository with a target branch, and beside it its clone with a change that sleeps $1 s, on which the jobs run.
project() {
	rm -rf target work base
	git init -q -b main target
	mkdir target/ci
	cp "$LONGPOLE_SOURCE/examples/ci/compare" target/ci/
	printf '#!/bin/sh\nsleep 0.1\n' >target/program.sh
	printf 'program: program.sh\n\tcp program.sh program && chmod +x program\n' >target/Makefile
	git -C target add . && git -C target -c user.name=a -c user.email=a@b commit -qm base
	git clone -q target work
	sed -i "s/0.1/$1/" work/program.sh
}
# github_lines, gitlab_lines - what each job does.
github_lines() { awk '/run: \|/ { on = 1; next } on && /^          / { print; next } { on = 0 }' "$LONGPOLE_SOURCE/examples/ci/github.yml"; }
gitlab_lines() { awk '/^  script:/ { on = 1; next } on && sub(/^    - /, "") { print; next } { on = 0 }' "$LONGPOLE_SOURCE/examples/ci/gitlab.yml"; }

# job KIND SLEEP STATUS - its status for a change that sleeps so long.
job() {
	local status=0
	project "$2"
	"$1_lines" >lines
	grep -q 'ci/compare ../base . 5 ./program' lines || fail "$1: no comparison in its lines"
	(cd work && LIMIT=+50% GITHUB_BASE_REF=main CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main GITHUB_STEP_SUMMARY=$PWD/summary bash -e ../lines) >said 2>&1 || status=$?
	((status == $3)) || fail "$1, $2 s: exit status $status: $(tail -n 3 said)"
	grep -q '^|' work/longpole-ci/diff.md || fail "$1: no table: $(head -n 3 work/longpole-ci/diff.md)"
	grep -q '<testsuite' work/longpole-ci/diff.xml || fail "$1: no list of tests"
}

test_ci_recipes() {
	command -v make >/dev/null || skip "no make"
	command -v git >/dev/null || skip "no git"
	job github 4 1 # (longer than a loaded machine keeps a short sleep waiting)
	job gitlab 4 1
	job github 0.1 0
	grep -q '^|' work/summary || fail "no summary"
	job gitlab 0.1 0
}
