# Starts a Slurm of one node and four slots in new namespaces (unshare --pid --mount-proc --net --uts), keeps its state
# in the directory $1, and becomes the command behind it.
set -eu
dir=$1
shift
hostname localhost
ip link set lo up
ip link add eth0 type veth peer name eth1 # srun asks for an address beside that of loopback
ip address add 10.78.0.1/24 dev eth0
ip link set eth0 up
mkdir -p "$dir/state" "$dir/spool" "$dir/munge"
chmod 755 "$dir"
chmod 700 "$dir/munge"
head -c 128 /dev/urandom >"$dir/munge/key"
chmod 400 "$dir/munge/key"
cat >"$dir/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=localhost CPUs=4 State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF="$dir/slurm.conf"
munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" \
	--pid-file="$dir/munge/pid" --log-file="$dir/munge/log" --seed-file="$dir/munge/seed"
slurmctld
slurmd
exec "$@"
