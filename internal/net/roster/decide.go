package roster

import (
	"context"
	"encoding/json"
	"fmt"
)

// Decide gives all ranks what decide makes, on rank 0, of the data of all ranks, by rank. All ranks call it.
func (t *Comm) Decide(ctx context.Context, name string, data []byte,
	decide func(parts [][]byte) ([]byte, error)) ([]byte, error) {
	parts, err := t.Gather(ctx, name, data)
	if err != nil {
		return nil, err
	}
	if t.self.Rank == 0 {
		if data, err = decide(parts); err != nil {
			return nil, err
		}
	}
	return t.Broadcast(ctx, name, data)
}

// DecideOn is Decide for values that travel as JSON.
func DecideOn[In, Out any](ctx context.Context, t *Comm, name string, mine In,
	decide func(all []In) (Out, error)) (out Out, err error) {
	data, err := json.Marshal(mine)
	if err != nil {
		return out, err
	}
	data, err = t.Decide(ctx, name, data, func(parts [][]byte) ([]byte, error) {
		all, err := decodeAll[In](name, parts)
		if err != nil {
			return nil, err
		}
		decision, err := decide(all)
		if err != nil {
			return nil, err
		}
		return json.Marshal(decision)
	})
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return out, fmt.Errorf("%s: decision of rank 0: %w", name, err)
	}
	return out, nil
}

// GatherOn is Gather for values that travel as JSON.
func GatherOn[T any](ctx context.Context, t *Comm, name string, mine T) (all []T, err error) {
	data, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	parts, err := t.Gather(ctx, name, data)
	if err != nil || t.self.Rank != 0 {
		return nil, err
	}
	return decodeAll[T](name, parts)
}

// decodeAll decodes what all ranks have told, by rank.
func decodeAll[T any](name string, parts [][]byte) ([]T, error) {
	all := make([]T, len(parts))
	for rank, part := range parts {
		if err := json.Unmarshal(part, &all[rank]); err != nil {
			return nil, fmt.Errorf("%s of rank %d: %w", name, rank, err)
		}
	}
	return all, nil
}

// BroadcastOn is Broadcast for a value that travels as JSON. The values of other ranks than rank 0 do not count.
func BroadcastOn[T any](ctx context.Context, t *Comm, name string, mine T) (told T, err error) {
	data, err := json.Marshal(mine)
	if err != nil {
		return told, err
	}
	if data, err = t.Broadcast(ctx, name, data); err != nil {
		return told, err
	}
	if err := json.Unmarshal(data, &told); err != nil {
		return told, fmt.Errorf("%s from rank 0: %w", name, err)
	}
	return told, nil
}
