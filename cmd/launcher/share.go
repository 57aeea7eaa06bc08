package main

import (
	"context"
	"errors"
	"fmt"

	"jacobi/internal/launch"
	"jacobi/internal/mps"
)

// shareGPUs starts NVIDIA's multi-process service if ranks on this machine share GPUs, unless device.mps is off, there
// are too many ranks for it or it cannot be started. Without the service the ranks sweep more slowly.
func (p *plan) shareGPUs(ctx context.Context, spec *launch.Spec, say func(string)) (done func()) {
	ranks := len(spec.Ranks)
	if p.cfg.Device.MPS == "off" || len(p.gpus) == 0 || ranks <= len(p.gpus) || ranks > mps.MaxClients*len(p.gpus) {
		return nil
	}
	service, err := mps.Start(ctx, spec.Env)
	switch {
	case errors.Is(err, mps.ErrNone):
		return nil
	case err != nil:
		say(fmt.Sprintf("ranks take turns on the GPUs, without NVIDIA's multi-process service: %v", err))
		return nil
	}
	say(fmt.Sprintf("%d ranks share %s under NVIDIA's multi-process service", ranks, plural(len(p.gpus), "GPU")))
	spec.Env = append(spec.Env, service.Environ()...)
	return func() {
		if err := service.Close(); err != nil {
			say(err.Error())
		}
	}
}
