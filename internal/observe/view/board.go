package view

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
)

// Board holds the newest state of each topic. Its methods may be called by several goroutines. Set does not wait for
// readers.
type Board struct {
	mu      sync.Mutex
	version uint64
	topics  map[string]topic
}

// topic is the message with the state of one topic, and the version of the board that it came with.
type topic struct {
	version uint64
	message []byte
}

// NewBoard returns an empty board.
func NewBoard() *Board { return &Board{topics: map[string]topic{}} }

// Set replaces the state of a topic. state must be a value of this package that JSON can hold.
func (b *Board) Set(name string, state any) {
	m := message(name, state)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version++
	b.topics[name] = topic{b.version, m}
}

// message returns the message with which a page gets the state of a topic.
func message(name string, state any) []byte {
	data, err := json.Marshal(struct {
		Topic string `json:"topic"`
		Data  any    `json:"data"`
	}{name, state})
	if err != nil {
		panic("view: " + name + ": " + err.Error()) // numbers that may be no number are Floats in this package
	}
	return data
}

// since returns the messages of the topics that have changed after a version, in the order of their names, and the
// version of the board.
func (b *Board) since(version uint64) (messages [][]byte, now uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.topics)) {
		if t := b.topics[name]; t.version > version {
			messages = append(messages, t.message)
		}
	}
	return messages, b.version
}
