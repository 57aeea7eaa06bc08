package e2e

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// page is a page in a browser.
type page struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string // that the browser has written to its console
}

// browse opens url in a browser of its own.
func browse(t *testing.T, url string) *page {
	t.Helper()
	p := browser(t)
	p.open(url)
	return p
}

// browser starts Chromium with a window of 1280 x 900 points.
func browser(t *testing.T) *page {
	t.Helper()
	program := installed(t, "chromium")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.DisableGPU)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx}
	p.check(chromedp.Listen(ctx, p.event))
	_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	p.check(err)
	p.check(chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900)))
	return p
}

func (p *page) open(url string) {
	p.t.Helper()
	p.check(chromedp.Do(p.ctx, chromedp.Navigate(url)))
}

func (p *page) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// event keeps what the browser writes to its console.
func (p *page) event(ev any) {
	var text string
	switch e := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		text = string(e.Type)
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
	case *log.EventEntryAdded:
		text = e.Entry.Text + " " + e.Entry.URL
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, text)
}

// quiet fails if the browser has written anything to its console.
func (p *page) quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) > 0 {
		p.t.Errorf("the console has %q", p.faults)
	}
}

// eval evaluates a JavaScript expression into value, which JSON fills.
func (p *page) eval(expression string, value any) {
	p.t.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("JSON.stringify("+expression+")"))
	p.check(err)
	p.check(json.Unmarshal([]byte(text), value))
}

// await waits until a JavaScript expression is true.
func (p *page) await(expression string) {
	p.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		var ok bool
		if p.eval("Boolean("+expression+")", &ok); ok {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s is not true after %v", expression, limit)
		}
	}
}
