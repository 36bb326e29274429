#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sqlite.sh DIRECTORY full|off TRANSACTIONS - SQLite's shell, a transaction for each line.
set -eu
rm -f "$1"/base.db*
{
	echo "PRAGMA synchronous=$2; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);"
	seq -f "INSERT INTO t VALUES(%.0f, hex(randomblob(50)));" "$3"
} | sqlite3 "$1/base.db"
