package configs

// Given returns the keys that the sources give, but those that belong to the start of the ranks, with their values.
// Together with its own keys and the contents of its files they decide the answer of a run: what they leave open,
// defaults and those keys decide.
func (b *Base) Given() map[string]string {
	given := map[string]string{}
	for _, k := range b.list {
		if b.given[k.name] && OfStart(k.name) == "" {
			given[k.name] = k.text(b.config)
		}
	}
	return given
}

// Reads returns the paths of the files that the problem of a run with keys of its own reads. file is that of With.
func (b *Base) Reads(own map[string]any, file func(key string) string) (paths []string) {
	for _, in := range b.inputs {
		value, has := own[in.Key]
		text, ok := value.(string)
		switch {
		case !has:
			text = in.Path
		case !ok || !namesFile(in.Key, text):
			continue
		case file(in.Key) != "":
			flat := map[string]any{in.Key: text}
			beside(file(in.Key), flat)
			text = flat[in.Key].(string)
		}
		if text != "" {
			paths = append(paths, text)
		}
	}
	return paths
}
