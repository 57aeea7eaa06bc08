package view

import (
	"bytes"
	"embed"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"jacobi/internal/observe/output"
)

//go:embed page
var files embed.FS

// index serves the page. Its assets carry the token as the page does. The page is no template: a program with package
// text/template keeps all exported methods of all its types.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	page, err := fs.ReadFile(files, "page/index.html")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	token := html.EscapeString(url.QueryEscape(s.token))
	_, _ = w.Write(bytes.ReplaceAll(page, []byte("TOKEN"), []byte(token))) // to a client that may be gone
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
