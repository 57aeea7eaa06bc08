# Everything a newcomer needs is `make run` and `make test`; `make help` lists the rest.
GO ?= go
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)

.PHONY: help build run test kernels race lint deps bench-cpu clean

help:            ## list the targets
	@grep -E '^[a-z-]+: .*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

build: deps      ## build bin/launcher and bin/jacobi-rank
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X jacobi/internal/version.stamp=$(VERSION)' -o bin/ ./cmd/launcher ./cmd/jacobi-rank

run: build       ## solve configs/quickstart.yaml with 4 ranks
	bin/launcher --config configs/quickstart.yaml

test: deps       ## every test but the race detector's
	$(GO) test -timeout 15m ./...
	@$(GO) test -count=1 -v -run 'GPU|TestBackend' ./cuda/... ./internal/device ./internal/e2e | grep 'NOT RUN' | sed 's/^ *[a-z_]*.go:[0-9]*: //' | sort -u || true

kernels:         ## compile the CUDA kernels to the PTX that is embedded; needs nvcc
	cuda/kernels/build.sh

race: deps       ## the concurrent packages under the race detector
	$(GO) test -race -short -timeout 15m $$($(GO) list ./... | grep -v -E 'internal/(e2e|reference)$$') # programs built without the detector, and a serial oracle

lint: deps       ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l .); \
	  if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

bench-cpu: build ## compare the CPU backend with its peers in C; QUICK=1 for less; Open MPI where mpicc is found
	@mkdir -p bin/peers && rm -f bin/peers/jacobi_mpi
	gcc -O3 -march=native -fopenmp -o bin/peers/jacobi_omp bench/peers/jacobi_omp.c -lm
	gcc -O3 -march=native -fopenmp -o bin/peers/copy bench/peers/copy.c -lm
	@! command -v mpicc >/dev/null || mpicc -O3 -march=native -fopenmp-simd -o bin/peers/jacobi_mpi bench/peers/jacobi_mpi.c -lm
	$(GO) run ./bench/cpu $(if $(QUICK),-quick)

deps:            ## download the Go modules
	@$(GO) mod download

clean:           ## remove what was built and computed
	rm -rf bin out
