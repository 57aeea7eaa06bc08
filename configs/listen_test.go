package configs

import (
	"strings"
	"testing"
)

func TestParseListen(t *testing.T) {
	for text, want := range map[string]ListenAt{
		"":                    {},
		":47000":              {Lo: 47000, Hi: 47000},
		":47000-47099":        {Lo: 47000, Hi: 47099},
		"10.1.2.3:":           {Where: "10.1.2.3"},
		"10.1.0.0/16:1-65535": {Where: "10.1.0.0/16", Lo: 1, Hi: 65535},
		"ib0:47000":           {Where: "ib0", Lo: 47000, Hi: 47000},
		"[fd00::/8]:47000":    {Where: "fd00::/8", Lo: 47000, Hi: 47000},
		"[::1]:":              {Where: "::1"},
	} {
		if got, err := ParseListen(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"ib0":        "a colon and ports are missing",
		"::1:47000":  "stands in brackets",
		":0":         `ports "0"`,
		":9-8":       `ports "9-8"`,
		":65536":     `ports "65536"`,
		":1-2-3":     `ports "1-2-3"`,
		"10.1.2.3:x": `ports "x"`,
	} {
		if got, err := ParseListen(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want an error with %q", text, got, err, want)
		}
	}
}
