package configs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hidden replaces a secret.
const hidden = "hidden"

// inline precedes the contents of a file in a value that otherwise names a file.
const inline = "inline:"

// NATS says which server connects the ranks, and with which credentials. With an empty URL the launcher starts a
// server. PasswordFile, Creds, NKey, CA, Cert, Key and SecretFile name a file, or hold its contents after "inline:".
// All written forms (YAML, JSON, fmt) hide the secrets.
type NATS struct {
	URL          string `key:"url"` // one server, or several separated by commas
	User         string `key:"user"`
	PasswordFile string `key:"password_file" kind:"path"`
	Creds        string `key:"creds" kind:"path"` // JWT and seed of a user
	NKey         string `key:"nkey" kind:"path"`  // seed of a user
	// CA holds the certificate authorities to trust, in PEM; "" for the system's.
	CA   string `key:"ca" kind:"path"`
	Cert string `key:"cert" kind:"path"` // certificate of this client, in PEM
	Key  string `key:"key" kind:"path"`  // key of Cert, in PEM
	// SecretFile holds a secret that all participants of a run share, so that other users of the server can neither
	// read nor forge their messages. The launcher makes one for each run on a server that it did not start.
	SecretFile string `key:"secret_file" kind:"path"`
	// Port, Advertise and Rendezvous apply to the server that a run without a URL starts.
	Port int `key:"port" max:"65535"` // 0: any free port
	// Advertise holds names or addresses, separated by commas, at which other machines reach the server; "": found
	// automatically.
	Advertise string `key:"advertise"`
	// Rendezvous is the directory of the file through which ranks without a launcher find the server; "": output.dir.
	Rendezvous string `key:"rendezvous"`
}

// AdvertisedHosts returns the list in Advertise.
func (n NATS) AdvertisedHosts() []string {
	var hosts []string
	for h := range strings.SplitSeq(n.Advertise, ",") {
		if h = strings.TrimSpace(h); h != "" {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// Inline returns the value of a key that holds contents instead of the name of a file.
func Inline(contents string) string { return inline + contents }

// Contents returns the text after "inline:", or the contents of the file that value names.
func Contents(value string) ([]byte, error) {
	if text, ok := strings.CutPrefix(value, inline); ok {
		return []byte(text), nil
	}
	f, err := readFile(value)
	if err == nil && len(f) == 0 {
		err = fmt.Errorf("%s is empty", value)
	}
	return f, err
}

// Inlined returns n with the contents of all its files, for ranks on machines without these files.
func (n NATS) Inlined() (NATS, error) {
	for _, f := range n.files() {
		if *f.value == "" {
			continue
		}
		data, err := Contents(*f.value)
		if err != nil {
			return n, fmt.Errorf("%s: %w", f.key, err)
		}
		*f.value = Inline(string(data))
	}
	return n, nil
}

// natsFile is a key of NATS that names a file.
type natsFile struct {
	key    string
	value  *string
	secret bool
}

func (n *NATS) files() []natsFile {
	return []natsFile{
		{"nats.password_file", &n.PasswordFile, true}, {"nats.creds", &n.Creds, true}, {"nats.nkey", &n.NKey, true},
		{"nats.ca", &n.CA, false}, {"nats.cert", &n.Cert, false}, {"nats.key", &n.Key, true},
		{"nats.secret_file", &n.SecretFile, true},
	}
}

// Public returns n with its secrets hidden.
func (n NATS) Public() NATS {
	n.URL = redactURLs(n.URL)
	for _, f := range n.files() {
		if *f.value != "" && (f.secret || strings.HasPrefix(*f.value, inline)) {
			*f.value = hidden
		}
	}
	return n
}

// redactURLs hides the user information of each URL in a list separated by commas. It hides the whole list if the
// secret part is ambiguous, since a password may contain a comma.
func redactURLs(list string) string {
	if !strings.Contains(list, "@") {
		return list
	}
	urls := strings.Split(list, ",")
	for i, s := range urls {
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil || u.Host == "" || strings.Contains(s, "@") && u.User == nil {
			return hidden
		}
		if u.User != nil {
			u.User = url.User(hidden)
			urls[i] = u.String()
		}
	}
	return strings.Join(urls, ",")
}

// natsText is NATS without methods, for marshalling.
type natsText NATS

// MarshalJSON writes n with its secrets hidden.
func (n NATS) MarshalJSON() ([]byte, error) { return json.Marshal(natsText(n.Public())) }

// String writes n with its secrets hidden.
func (n NATS) String() string { return fmt.Sprint(natsText(n.Public())) }

// GoString writes n with its secrets hidden.
func (n NATS) GoString() string { return fmt.Sprintf("%#v", natsText(n.Public())) }

func (v *validator) nats(n NATS) {
	var who []string // keys that identify this client
	for s := range strings.SplitSeq(n.URL, ",") {
		if n.URL == "" {
			break
		}
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			v.fault("nats.url %q: must be nats://host:port; allowed are nats, tls, ws and wss", redactURLs(n.URL))
			return
		}
		if u.User != nil && who == nil {
			who = append(who, "a user in nats.url")
		}
	}
	for _, h := range n.AdvertisedHosts() {
		if strings.ContainsAny(h, "/@[] ") || strings.Contains(h, ":") && net.ParseIP(h) == nil {
			v.fault("nats.advertise %q: must be names or addresses without a port, with commas between them",
				n.Advertise)
			break
		}
	}
	for _, id := range []struct{ key, value string }{{"nats.user", n.User}, {"nats.creds", n.Creds},
		{"nats.nkey", n.NKey}} {
		if id.value != "" {
			who = append(who, id.key)
		}
	}
	if len(who) > 1 {
		v.fault("%s: only one of them is allowed", strings.Join(who, " and "))
	}
	if (n.User == "") != (n.PasswordFile == "") {
		v.fault("nats.user and nats.password_file: set both or neither")
	}
	if (n.Cert == "") != (n.Key == "") {
		v.fault("nats.cert and nats.key: set both or neither")
	}
}

// ListenAt is a value of halo.direct.listen, as halo.ListenAt has it.
type ListenAt struct {
	Where  string // an address, a network such as 10.1.0.0/16, or the name of an interface; "": all interfaces
	Lo, Hi int    // ports; both 0: any
}

// ParseListen parses WHERE:PORTS, where PORTS is empty, a port or a range such as 47000-47099. An IPv6 address or
// network stands in brackets. The empty text is any port of all interfaces.
func ParseListen(text string) (ListenAt, error) {
	if text == "" {
		return ListenAt{}, nil
	}
	i := max(0, strings.LastIndexByte(text, ':'))
	where, ports := text[:i], strings.TrimPrefix(text[i:], ":")
	bare, bracketed := strings.CutPrefix(where, "[")
	bare, closed := strings.CutSuffix(bare, "]")
	lo, hi, isRange := strings.Cut(ports, "-")
	if !isRange {
		hi = lo
	}
	low, errLo := strconv.ParseUint(lo, 10, 16)
	high, errHi := strconv.ParseUint(hi, 10, 16)
	anyPort := strings.HasSuffix(text, ":")
	if bracketed != closed || !bracketed && strings.Contains(where, ":") ||
		!anyPort && (errLo != nil || errHi != nil || low < 1 || low > high || !strings.Contains(text, ":")) {
		return ListenAt{}, errors.New("must be WHERE:PORTS, such as :47000-47099, 10.1.0.0/16:, [::1]: or ib0:47000")
	}
	return ListenAt{bare, int(low), int(high)}, nil
}

// Metrics says where a run serves metrics to Prometheus.
type Metrics struct {
	Listen string        `key:"listen"` // HOST:PORT; "": nowhere
	Linger time.Duration `key:"linger"` // how long they stay after the run, unless they are read before
}
