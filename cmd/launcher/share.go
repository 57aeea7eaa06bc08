package main

import (
	"context"
	"errors"
	"fmt"

	"jacobi/internal/launch"
	"jacobi/internal/mps"
)

// shareGPUs starts NVIDIA's multi-process service for ranks of this machine that share GPUs, unless device.mps is off
// or there is none to start. Without it they sweep as well, but slower.
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
