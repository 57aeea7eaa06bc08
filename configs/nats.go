package configs

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
)

// hidden stands where a secret is.
const hidden = "hidden"

// inline begins a value that is the contents of a file and not its name.
const inline = "inline:"

// NATS says which server connects the ranks, and who they are to it; an empty URL: the launcher starts one. All but URL
// and User name a file, or hold its contents after "inline:". It is written, as YAML, as JSON and by fmt, with its
// secrets hidden.
type NATS struct {
	URL          string `mapstructure:"url" json:"url" yaml:"url"` // one server, or several with commas between them
	User         string `mapstructure:"user" json:"user" yaml:"user"`
	PasswordFile string `mapstructure:"password_file" json:"password_file" yaml:"password_file"`
	Creds        string `mapstructure:"creds" json:"creds" yaml:"creds"` // JWT and seed of a user
	NKey         string `mapstructure:"nkey" json:"nkey" yaml:"nkey"`    // seed of a user
	// whom to trust instead of the system's authorities; PEM
	CA   string `mapstructure:"ca" json:"ca" yaml:"ca"`
	Cert string `mapstructure:"cert" json:"cert" yaml:"cert"` // of this client; PEM
	Key  string `mapstructure:"key" json:"key" yaml:"key"`    // of Cert; PEM
	// SecretFile holds what those who take part in a run share, so that nobody else on the server can read or forge
	// their messages. The launcher makes one for each run on a server that is not its own.
	SecretFile string `mapstructure:"secret_file" json:"secret_file" yaml:"secret_file"`
	// Of the server that a run without a URL starts for itself:
	Port int `mapstructure:"port" json:"port" yaml:"port"` // 0: any that is free
	// names or addresses, with commas between them, at which other machines reach it; "": found out
	Advertise string `mapstructure:"advertise" json:"advertise" yaml:"advertise"`
	// Rendezvous is the directory of the file through which ranks that no launcher started find that server; "":
	// output.dir.
	Rendezvous string `mapstructure:"rendezvous" json:"rendezvous" yaml:"rendezvous"`
}

// AdvertisedHosts returns the names and addresses of Advertise.
func (n NATS) AdvertisedHosts() []string {
	var hosts []string
	for h := range strings.SplitSeq(n.Advertise, ",") {
		if h = strings.TrimSpace(h); h != "" {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// Inline returns the value of a key that holds contents in the place of a file's name.
func Inline(contents string) string { return inline + contents }

// Contents returns what a key of NATS stands for: what follows "inline:", or what the file of that name holds.
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

// Inlined returns n with all files read, for ranks on machines that do not have them.
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

// redactURLs hides the user information of each URL in a list with commas; all of the list where it is not clear
// which part is secret, since a password may hold a comma.
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

// natsText is NATS as it is written.
type natsText NATS

// MarshalJSON writes n with its secrets hidden.
func (n NATS) MarshalJSON() ([]byte, error) { return json.Marshal(natsText(n.Public())) }

// MarshalYAML writes n with its secrets hidden.
func (n NATS) MarshalYAML() (any, error) { return natsText(n.Public()), nil }

// String writes n with its secrets hidden.
func (n NATS) String() string { return fmt.Sprint(natsText(n.Public())) }

// GoString writes n with its secrets hidden.
func (n NATS) GoString() string { return fmt.Sprintf("%#v", natsText(n.Public())) }

func (v *validator) nats(n NATS) {
	var who []string // ways to say who this is
	for s := range strings.SplitSeq(n.URL, ",") {
		if n.URL == "" {
			break
		}
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			v.fault("nats.url %q: nats://host:port is wanted; allowed are nats, tls, ws and wss", redactURLs(n.URL))
			return
		}
		if u.User != nil && who == nil {
			who = append(who, "a user in nats.url")
		}
	}
	if n.Port < 0 || n.Port > math.MaxUint16 {
		v.fault("nats.port %d: 0 (any that is free) to %d are allowed", n.Port, math.MaxUint16)
	}
	for _, h := range n.AdvertisedHosts() {
		if strings.ContainsAny(h, "/@[] ") || strings.Contains(h, ":") && net.ParseIP(h) == nil {
			v.fault("nats.advertise %q: names or addresses without a port are wanted, with commas between them",
				n.Advertise)
			break
		}
	}
	for _, way := range []struct{ key, value string }{{"nats.user", n.User}, {"nats.creds", n.Creds},
		{"nats.nkey", n.NKey}} {
		if way.value != "" {
			who = append(who, way.key)
		}
	}
	if len(who) > 1 {
		v.fault("%s: one of them is wanted", strings.Join(who, " and "))
	}
	if (n.User == "") != (n.PasswordFile == "") {
		v.fault("nats.user and nats.password_file: both or neither are wanted")
	}
	if (n.Cert == "") != (n.Key == "") {
		v.fault("nats.cert and nats.key: both or neither are wanted")
	}
}
