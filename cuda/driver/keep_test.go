package driver

import (
	"slices"
	"testing"
)

// Kept memory is taken again by its size, and goes when nobody has taken it between two calls of Renew.
func TestKeepingBySize(t *testing.T) {
	t.Parallel()
	pool := map[int64][]kept[DevicePtr]{8: {{memory: 1}, {memory: 2}}, 16: {{memory: 3}}}
	if p, ok := take(pool, 8); !ok || p != 2 {
		t.Errorf("took %d, %v; want 2", p, ok)
	}
	if _, ok := take(pool, 9); ok {
		t.Error("took memory of another size")
	}
	var freed []DevicePtr
	free := func(p DevicePtr) { freed = append(freed, p) }
	drop(pool, 1, free)
	if freed != nil {
		t.Errorf("freed %v at once", freed)
	}
	pool[8] = append(pool[8], kept[DevicePtr]{memory: 4})
	drop(pool, 1, free)
	slices.Sort(freed)
	if !slices.Equal(freed, []DevicePtr{1, 3}) || len(pool) != 1 || len(pool[8]) != 1 {
		t.Errorf("freed %v and kept %v, want 1 and 3 freed, 4 kept", freed, pool)
	}
	drop(pool, 0, free)
	if len(pool) != 0 {
		t.Errorf("kept %v", pool)
	}
}

// Memory that was allocated before Keep is not kept.
func TestKeepingHoldsItsOwn(t *testing.T) {
	t.Parallel()
	var k keeping
	k.gave(1, 8)
	if k.holds(1) {
		t.Error("memory is kept without Keep")
	}
	c := &Context{primary: &primary{}}
	c.Keep()
	k2 := &c.primary.keeping
	k2.gave(2, 8)
	if k2.holds(1) || !k2.holds(2) {
		t.Error("want 2 held, and not 1")
	}
	k2.keepDevice(2)
	if p, ok := k2.takeDevice(8); !ok || p != 2 || !k2.holds(2) {
		t.Errorf("took %d, %v; want 2, held again", p, ok)
	}
	h := &HostMemory{bytes: []byte{1, 2}, context: c}
	if err := h.Free(); err != nil || h.bytes != nil {
		t.Errorf("free: %v", err)
	}
	if again, err := c.AllocHost(2); err != nil || !slices.Equal(again.Bytes(), []byte{0, 0}) {
		t.Errorf("host memory %v, %v; want zeros", again, err)
	}
}
