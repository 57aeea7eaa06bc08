# Prints ncu's table of metrics, one line for each launch.
import csv, sys
launches = {}
for r in csv.DictReader(line for line in sys.stdin if line.startswith('"')):
    launches.setdefault((r["ID"], r["Kernel Name"]), []).append((r["Metric Name"], r["Metric Value"]))
for (_, name), metrics in launches.items():
    stalled, ratio = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"
    short = [(m.replace(stalled, "").replace(ratio, "").split(".")[0], v) for m, v in metrics]
    print(name.split("(")[0], *(f"{m}={v}" for m, v in short))
