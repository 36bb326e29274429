#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# postgres.sh DIRECTORY on|off TRANSACTIONS - a server that makes its log durable (or not), pgbench's load, its end.
# DIRECTORY/data is a cluster, DIRECTORY/bin has PostgreSQL's programs. No transactions: make pgbench's tables.
set -eu
dir=$1
export PATH="$dir/bin:$PATH"
postgres -D "$dir/data" -k "$dir" -c listen_addresses= -c fsync="$2" -c full_page_writes=off \
	-c autovacuum=off >"$dir/postgres.log" 2>&1 &
server=$!
until pg_isready -q -U postgres -h "$dir"; do sleep 0.05; done
if [ "$3" -eq 0 ]; then
	pgbench -h "$dir" -q -i -s 4 -U postgres postgres
else
	pgbench -h "$dir" -U postgres -n -M prepared -c 4 -j 2 -s 4 -f "${0%.sh}.sql" -t "$3" postgres
fi
kill -INT "$server"
wait
