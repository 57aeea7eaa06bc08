package cpu

func simdFamilies() []family { return nil }
