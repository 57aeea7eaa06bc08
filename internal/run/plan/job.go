package plan

import (
	"context"
	"fmt"

	"jacobi/configs"
	"jacobi/internal/observe/output"
)

// Job plans one of many runs on the ranks of p, which have started. alone says that one rank does it without the
// others. As with New, a plan that comes with an error cannot be run.
func (p *Plan) Job(ctx context.Context, cfg configs.Config, alone bool) (*Plan, error) {
	if err := checkKeys(cfg); err != nil {
		return nil, err
	}
	if alone {
		cfg.Run.Ranks, cfg.Run.Balance = 1, configs.BalanceEqual
	}
	at, devices := p.Places, p.Devices
	if n := cfg.Working(); n < len(at.Ranks) {
		at.Ranks = at.Ranks[:n]
		if len(devices.Choices) > 0 {
			devices.Choices = devices.Choices[:n]
		}
	}
	return on(ctx, cfg, at, devices)
}

// checkKeys refuses values of keys that are not allowed, and keys that one of many runs cannot have.
func checkKeys(c configs.Config) error {
	alone := c
	alone.Output.ProbesEvery = configs.Interval{Sweeps: 1} // the runs of a start read their probes at the end
	if err := configs.Validate(alone); err != nil {
		return err
	}
	if err := configs.CheckMany(c); err != nil {
		return err
	}
	for _, f := range c.Output.Files() {
		if !output.IsLooseName(f.Name) {
			return fmt.Errorf("%s %q: the runs of one start write .npy, .vti, .png, .jpg, .csv and .json", f.Key,
				f.Name)
		}
	}
	return nil
}
