# Everything a newcomer needs is `make run` and `make test`; `make help` lists the rest.
# Without a Go that is new enough, .ci/toolchain fetches a pinned one into .toolchain, for every target that needs it.
ifeq ($(origin GO),undefined)
ifneq ($(filter-out help clean test-deps,$(or $(MAKECMDGOALS),help)),)
GO := $(shell .ci/toolchain)
$(if $(GO),,$(error There is no Go that can build this program))
export PATH := $(patsubst %/,%,$(dir $(GO))):$(PATH)
endif
endif
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
BIN := bin
TRIM := -trimpath
LDFLAGS = -s -w -X jacobi/internal/base/version.stamp=$(VERSION)

# With a C compiler the programs hold go-nvml, which tells of GPUs what CUDA does not. The linker leaves NVML's
# functions to be found when they are called, so that the programs also run where there is no libnvidia-ml.
ifeq ($(origin CC),default)
CC := $(if $(GO),$(shell $(GO) env CC),gcc)
endif
TAGS = netgo,osusergo
NVML_TAGS = nvml,$(TAGS)
NVML = -tags $(NVML_TAGS) -ldflags '$(LDFLAGS) -extldflags=-Wl,-z,lazy'
NVML_ENV = CGO_ENABLED=1 CC='$(CC)'
# Everywhere, so that what uses cgo is compiled and checked once, with and without NVML.
export CGO_CFLAGS ?= -g -O2 -Wno-deprecated-declarations
HAS_CC := $(shell printf '\043include <dlfcn.h>\n' | $(CC) -E - >/dev/null 2>&1 && echo yes)

.PHONY: help build run test kernels race lint deps test-deps bench-cpu dist clean

help:            ## list the targets
	@grep -E '^[a-z-]+: .*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

build: deps      ## build bin/launcher and bin/jacobi-rank
ifeq ($(HAS_CC),yes)
	$(NVML_ENV) $(GO) build $(TRIM) $(NVML) -o $(BIN)/ ./cmd/launcher ./cmd/jacobi-rank
else
	@echo "No C compiler ($(CC)): building without NVML, so without device.pin and every device.select but round-robin."
	CGO_ENABLED=0 $(GO) build $(TRIM) -tags $(TAGS) -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/launcher ./cmd/jacobi-rank
endif

# Archives with the same bytes for the same commit, compilers and C compiler. That of arm64 is built without cgo.
DIST := dist
ARCHES := amd64 arm64
CONFIGS = $(wildcard configs/*.yaml configs/*.toml configs/*.json configs/*.png)
PYTHON = $(wildcard python/pyproject.toml python/README.md python/*/*.py)
PYTHON := $(filter-out python/tests/%,$(PYTHON)) python/jacobisolver/py.typed
DIST_TIME = $(or $(shell git log -1 --format=%ct 2>/dev/null),0)
dist: $(ARCHES:%=dist-%) ## put archives of the programs for Linux on amd64 and arm64 into dist/, with SHA256SUMS
	cd $(DIST) && sha256sum $(ARCHES:%=jacobi-$(VERSION)-linux-%.tar.gz) > SHA256SUMS

dist-%: NAME = jacobi-$(VERSION)-linux-$*
dist-%:
	rm -rf $(DIST)/$(NAME)
	$(MAKE) build BIN=$(abspath $(DIST))/$(NAME)/bin VERSION=$(VERSION) GO='GOOS=linux GOARCH=$* $(GO)' \
	  $(if $(filter amd64-amd64,$*-$(shell $(GO) env GOHOSTARCH)),,HAS_CC= CC='no cgo for $*')
	mkdir $(DIST)/$(NAME)/configs
	cp LICENSE README.md $(DIST)/$(NAME)
	cp $(CONFIGS) $(DIST)/$(NAME)/configs
	cp --parents $(PYTHON) $(DIST)/$(NAME)
	tar -C $(DIST) --sort=name --format=ustar --mtime=@$(DIST_TIME) --owner=0 --group=0 --numeric-owner \
	  --mode=u=rwX,go=rX -cf $(DIST)/$(NAME).tar $(NAME)
	gzip -nf $(DIST)/$(NAME).tar
	rm -rf $(DIST)/$(NAME)

run: build       ## solve configs/quickstart.yaml with 4 ranks
	$(BIN)/launcher --config configs/quickstart.yaml

# The tests have the programs' tags, so that a package is compiled once for both. Tests of runs mostly wait: they begin
# first, and more at a time than there may be cores, while other packages compute. make lint vets them. Linking
# without symbols takes half as long.
TEST = $(GO) tool gotestsum --format pkgname-and-test-fails -- -vet=off
TEST_FLAGS = -tags $(TAGS) -ldflags '-s -w'
test: deps       ## every test but the race detector's; lists those that did not run
	$(TEST) $(TEST_FLAGS) -timeout 60m -parallel 6 ./internal/e2e ./...
	$(if $(HAS_CC),$(NVML_ENV) $(TEST) $(NVML) ./internal/compute/device)

kernels:         ## compile the CUDA kernels to the PTX and the machine code that are embedded; needs nvcc
	cuda/kernels/build.sh

# Neither these packages nor their tests start goroutines that share memory, the goroutines are those of other packages
# (oracle), or the programs lack the detector (e2e).
NO_RACE := internal/e2e configs docs cuda/driver internal/base/(ballast|dirlock|npy|regular|show|style|suggest)
NO_RACE += internal/compute/(elementary|oracle|cpu/kernel) internal/net/rendezvous
NO_RACE += internal/run/method internal/tools/(examine|soak)
NO_RACE += solver/methods
race: deps       ## the concurrent packages under the race detector
	$(GO) test -race -short -vet=off -ldflags '-s -w' -timeout 30m $$($(GO) list -f \
	  '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | grep -vwE '$(subst $() ,|,$(NO_RACE))')

lint: deps       ## gofmt, go vet, staticcheck, lines of at most 120 columns
	@.ci/columns
	@unformatted=$$(gofmt -l $$(find . -path ./.toolchain -prune -o -name "*.go" -print)); \
	  if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet -tags $(TAGS) ./...
	$(GO) tool staticcheck -tags $(TAGS) ./...
	$(if $(HAS_CC),$(NVML_ENV) $(GO) vet -tags $(NVML_TAGS) ./internal/compute/device)
	$(if $(HAS_CC),$(NVML_ENV) $(GO) tool staticcheck -tags $(NVML_TAGS) ./internal/compute/device)

bench-cpu: build ## compare the CPU backend with its peers in C; QUICK=1 for less; Open MPI where it can be compiled
	@mkdir -p bin/peers && rm -f bin/peers/jacobi_mpi
	gcc -O3 -march=native -fopenmp -o bin/peers/jacobi_omp bench/peers/jacobi_omp.c -lm
	gcc -O3 -march=native -fopenmp -o bin/peers/copy bench/peers/copy.c -lm
	@if mpicc -fsyntax-only bench/peers/jacobi_mpi.c 2>/dev/null; then \
	  mpicc -O3 -march=native -fopenmp-simd -o bin/peers/jacobi_mpi bench/peers/jacobi_mpi.c -lm; \
	else echo "No mpicc that finds mpi.h (on Debian: libopenmpi-dev): without the lines of Open MPI."; fi
	$(GO) run ./bench/cpu $(if $(QUICK),-quick)

TEST_PACKAGES := g++ openssh-client openssh-server iproute2 iptables util-linux
TEST_PACKAGES += openmpi-bin mpich munge slurm-client slurmctld slurmd
TEST_PACKAGES += qemu-user-static libc6-arm64-cross
TEST_PACKAGES += python3-numpy python3-pytest python3-pil python3-vtk9
TEST_PACKAGES += python3-venv python3-setuptools python3-wheel
TEST_PACKAGES += chromium fonts-dejavu-core
TEST_PACKAGES += $(if $(shell command -v docker),docker-compose busybox-static prometheus)
test-deps:       ## on Debian as root: install programs without which some tests do not run
	@dpkg -s $(TEST_PACKAGES) >/dev/null 2>&1 || { apt-get update -q && DEBIAN_FRONTEND=noninteractive \
	  apt-get install -qy --no-install-recommends $(TEST_PACKAGES); } >/dev/null

deps:            ## download the Go modules
	@$(GO) mod download

clean:           ## remove what was built and computed
	rm -rf bin out dist
