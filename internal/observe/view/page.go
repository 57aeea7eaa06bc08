package view

import (
	"bytes"
	"embed"
	"html/template"
	"io/fs"
	"net/http"
	"time"

	"jacobi/internal/observe/output"
)

//go:embed page
var files embed.FS

// index serves the page. Its assets carry the token as the page does.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	t, err := template.ParseFS(files, "page/index.html")
	var b bytes.Buffer
	if err == nil {
		err = t.Execute(&b, s.token)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // to a client that may be gone
}

// asset serves a file of the page.
func asset(w http.ResponseWriter, r *http.Request) {
	data, err := fs.ReadFile(files, "page/"+r.PathValue("asset"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, r.PathValue("asset"), time.Time{}, bytes.NewReader(data))
}

// shades serves the colours of the two kinds of bars, 3 bytes each: first those of a bar that does not diverge.
func shades(w http.ResponseWriter, _ *http.Request) {
	var b []byte
	for _, diverging := range []bool{false, true} {
		list, err := output.Shades(diverging)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for _, c := range list {
			b = append(b, c.R, c.G, c.B)
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(b) // to a client that may be gone
}
