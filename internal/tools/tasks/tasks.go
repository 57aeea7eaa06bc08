// Package tasks is what ranks do in place of solving: they measure their machines for launcher probe (probe.go), try
// the start of a run for launcher doctor (examine.go), or solve again and again and compare the results for launcher
// soak (soak.go; its fields field.go, the reference reference.go, the hashes of rows rows.go, what it tells watch.go).
// Command jacobi-rank hands a task to package rank, which has the ranks meet first.
package tasks
