#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sqlite.sh DIRECTORY full|off TRANSACTIONS - SQLite's shell, a transaction of a hundred rows for each line.
set -eu
rm -f "$1"/base.db*
{
	echo "PRAGMA synchronous=$2; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t(b);"
	seq -f "INSERT INTO t(b) SELECT hex(randomblob(50)) || value FROM generate_series(1, 300); SELECT %.0f;" "$3"
} | sqlite3 "$1/base.db"
