#!/bin/sh
# Prints hardware counters of the kernels: cuda/bench/prof.sh N T B..., after run.sh. Needs a GPU whose counters may be
# read.
s=smsp__average_warps_issue_stalled
M=gpu__time_duration.sum,smsp__issue_active.avg.pct_of_peak_sustained_active,smsp__inst_executed.sum
M=$M,dram__bytes.sum,smsp__warps_active.avg.per_cycle_active
for x in no_instruction math_pipe_throttle long_scoreboard short_scoreboard wait not_selected dispatch_stall \
	mio_throttle lg_throttle barrier; do
	M=$M,${s}_${x}_per_issue_active.ratio
done
cd "$(dirname "$0")" && ONCE=1 ncu --clock-control none --csv -k "regex:once|sweep|deep|held" \
	--metrics $M /tmp/bench time "$@" | python3 prof.py
