package metrics

import "github.com/prometheus/client_golang/prometheus"

// Labels of metrics.
var (
	ofRun  []string
	ofRank = []string{"rank"}
	ofHalo = []string{"rank", "side", "transport"}
	ofGPU  = []string{"rank", "gpu"}
)

// desc describes the metric jacobi_NAME.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("jacobi_"+name, help, labels, nil)
}

// The metrics. Their names and labels are part of the interface; docs/outputs.md lists them.
var (
	runInfo = desc("run_info", "The run that is served.", "name", "version", "method", "problem", "dtype", "nx", "ny",
		"ranks")
	restarts      = desc("restarts_total", "Restarts of the run by the launcher.", ofRun...)
	norm          = desc("norm", "L2 norm of the newest iteration in the run's progress.", ofRun...)
	tolerance     = desc("tolerance", "Norm at which the run ends.", ofRun...)
	maxIterations = desc("max_iterations", "The most iterations that the run does.", ofRun...)
	expected      = desc("expected_iterations", "Estimate of all iterations of the run.", ofRun...)
	remaining     = desc("remaining_seconds", "Estimate of the time until the last iteration.", ofRun...)

	rankInfo   = desc("rank_info", "Where a rank runs.", "rank", "host", "backend", "device")
	seen       = desc("rank_seen_timestamp_seconds", "When the newest statistics of the rank arrived.", ofRank...)
	lagging    = desc("rank_lagging", "1 if the other ranks wait for this one, else 0.", ofRank...)
	iterations = desc("iterations_total", "Sweeps, or cycles of multigrid, with those before a restart.", ofRank...)
	updates    = desc("point_updates_total", "Updates of points of the rank's stripe.", ofRank...)
	elapsed    = desc("sweeping_seconds_total", "Time since the first sweep of the rank.", ofRank...)
	haloWait   = desc("halo_wait_seconds_total", "Time in which the rank sent rows and waited for rows.", ofRank...)
	normWait   = desc("norm_wait_seconds_total", "Time in which the rank sent sums and waited for sums.", ofRank...)
	refused    = desc("refused_messages_total", "Messages over NATS that were not sealed for this run.", ofRank...)

	haloSent     = desc("halo_sent_bytes_total", "Bytes of rows sent to a neighbour.", ofHalo...)
	haloReceived = desc("halo_received_bytes_total", "Bytes of rows received from a neighbour.", ofHalo...)
	haloAsked    = desc("halo_requests_total", "Requests for rows that did not arrive.", ofHalo...)
	haloResent   = desc("halo_resent_frames_total", "Frames sent again.", ofHalo...)
	haloTwice    = desc("halo_duplicate_frames_total", "Frames received again.", ofHalo...)
	haloRefused  = desc("halo_refused_total", "Frames, and connections over TCP, that were refused.", ofHalo...)
	haloLost     = desc("halo_lost_total", "Frames, and sockets over TCP, that were lost.", ofHalo...)

	fieldBytes = desc("field_memory_bytes", "Memory in which the rank sweeps, on its device.", ofRank...)
	resident   = desc("resident_memory_bytes", "Resident memory of the rank's process.", ofRank...)
	peak       = desc("peak_resident_memory_bytes", "The most resident memory of the rank's process.", ofRank...)

	saved       = desc("checkpoints_written_total", "Checkpoints written.", ofRun...)
	unsaved     = desc("checkpoints_failed_total", "Checkpoints that failed.", ofRun...)
	savedBytes  = desc("checkpoint_size_bytes", "Size of the newest checkpoint.", ofRun...)
	savedTime   = desc("checkpoint_duration_seconds", "Time that the newest checkpoint took.", ofRun...)
	savedSweeps = desc("checkpoint_iterations", "Iterations that the newest checkpoint holds.", ofRun...)

	gpuInfo        = desc("gpu_info", "The GPU of a rank.", "rank", "gpu", "name", "uuid")
	gpuTemperature = desc("gpu_temperature_celsius", "Temperature of the rank's GPU.", ofGPU...)
	gpuPower       = desc("gpu_power_watts", "Power that the rank's GPU draws.", ofGPU...)
	gpuMemory      = desc("gpu_memory_used_bytes", "Memory of the rank's GPU in use, by all processes.", ofGPU...)
	gpuClock       = desc("gpu_sm_clock_hertz", "Clock of the rank's GPU.", ofGPU...)
	gpuLimited     = desc("gpu_clock_limited", "1 if the clocks are lower than they could be under load.", ofGPU...)
	gpuErrors      = desc("gpu_ecc_errors_total", "Errors of the GPU's memory since its driver was loaded.",
		append(ofGPU[:2:2], "kind")...)
)

// descriptions returns all metrics.
func descriptions() []*prometheus.Desc {
	return []*prometheus.Desc{
		runInfo, restarts, norm, tolerance, maxIterations, expected, remaining,
		rankInfo, seen, lagging, iterations, updates, elapsed, haloWait, normWait, refused,
		haloSent, haloReceived, haloAsked, haloResent, haloTwice, haloRefused, haloLost,
		fieldBytes, resident, peak, saved, unsaved, savedBytes, savedTime, savedSweeps,
		gpuInfo, gpuTemperature, gpuPower, gpuMemory, gpuClock, gpuLimited, gpuErrors,
	}
}
