// SPDX-License-Identifier: Apache-2.0
// loop.js UNITS ROUNDS - what a timer calls computes, and holds the event loop up; another timer has little to do.
const units = Number(process.argv[2]), rounds = Number(process.argv[3]);
function slowHandler(n) {
  let s = 0;
  for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003;
  return s;
}
let round = 0, sum = 0;
function next() {
  sum += slowHandler(units);
  if (++round < rounds) setTimeout(next, 2);
  else clearInterval(other);
}
const other = setInterval(() => { sum++; }, 5);
next();
