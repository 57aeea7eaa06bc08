package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jacobi/configs"
	"jacobi/docs"
	"jacobi/internal/base/style"
	"jacobi/internal/base/suggest"
	"jacobi/internal/base/version"
	"jacobi/internal/observe/events"
)

// newHelpCommand returns the command that tells about commands, as --help does, and about keys of the run file.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | KEY]",
		Short: "Tell about a command, or a key of the run file",
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			found := slices.DeleteFunc(topics(cmd.Root()), func(n string) bool { return !strings.HasPrefix(n, begun) })
			return found, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if text := keyHelp(args[0]); text != "" {
					cmd.Print(text)
					return nil
				}
			}
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				name := strings.Join(args, " ")
				near, ok := suggest.Nearest(name, topics(cmd.Root()))
				if !ok {
					near, ok = configs.Nearest(name)
				}
				if ok {
					return fmt.Errorf("help %q: did you mean %s?", name, near)
				}
				return fmt.Errorf("help %q: no command, key or section of the run file has this name", name)
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// topics returns the names of which help knows something: commands and keys.
func topics(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return append(names, configs.Names()...)
}

// helpColumns is the width of help.
const helpColumns = 80

// keyHelp describes a key, or all keys of a section in a line each; "" if there is none with this name.
func keyHelp(name string) string {
	var section strings.Builder
	for _, k := range docs.Keys() {
		if k.Name == name {
			initial, own := configs.Defaults(name)
			if initial, own = cmp.Or(initial, "empty"), cmp.Or(own, "empty"); own != initial {
				initial += ", with a problem of your own " + own
			}
			variable := "JACOBI_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
			return fmt.Sprintf("%s\nDefault: %s\n\n%s\n\nIn the environment: %s\n",
				style.Paragraph(name+": ", k.Values, 2, helpColumns), initial,
				style.Paragraph("", k.Meaning, 0, helpColumns), variable)
		}
		if strings.HasPrefix(k.Name, name+".") {
			section.WriteString(style.Paragraph("  "+k.Name+": ", k.Meaning, 4, helpColumns) + "\n")
		}
	}
	return section.String()
}

// completeSetting completes keys of the run file, each followed by "=", and the words that a key takes as values.
func completeSetting(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	var found []string
	for _, k := range docs.Keys() {
		if strings.HasPrefix(k.Name+"=", begun) && begun != k.Name+"=" {
			found = append(found, k.Name+"=")
		}
		for _, w := range k.Words {
			if setting := k.Name + "=" + w; strings.HasPrefix(begun, k.Name+"=") && strings.HasPrefix(setting, begun) {
				found = append(found, setting)
			}
		}
	}
	switch {
	case !strings.Contains(begun, "="):
		return found, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	case len(found) == 0:
		return nil, cobra.ShellCompDirectiveDefault // files
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// fitHelp makes the help of a command and of those below it fit helpColumns.
func fitHelp(cmd *cobra.Command) {
	for _, c := range append(cmd.Commands(), cmd) {
		c.Long = reflow(c.Long)
	}
	// Not a template of cobra: a program with package text/template keeps all exported methods of all its types.
	usage := cmd.UsageFunc()
	cmd.SetUsageFunc(func(c *cobra.Command) error {
		out := c.OutOrStderr()
		var b strings.Builder
		c.SetOut(&b)
		err := usage(c)
		c.SetOut(out)
		flags := c.LocalFlags()
		wide, fitting := strings.TrimSpace(flags.FlagUsages()), strings.TrimSpace(flags.FlagUsagesWrapped(helpColumns))
		_, werr := io.WriteString(out, strings.Replace(b.String(), wide, fitting, 1))
		return errors.Join(err, werr)
	})
}

// reflow fits text to helpColumns: paragraphs are filled again, and those with indented lines keep their lines.
func reflow(text string) string {
	blocks := strings.Split(text, "\n\n")
	for i, b := range blocks {
		if strings.HasPrefix(b, " ") || strings.Contains(b, "\n ") {
			blocks[i] = style.Fold(b, helpColumns)
		} else {
			blocks[i] = style.Paragraph("", b, 0, helpColumns)
		}
	}
	return strings.Join(blocks, "\n\n")
}

const aboutCompletion = `completion prints a script by which a shell completes commands, flags, and keys and values of
the run file. In bash and zsh: source <(launcher completion bash). In fish: launcher completion fish | source.`

// newCompletionCommand returns the command that prints the scripts.
func newCompletionCommand(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:       "completion {bash | zsh | fish}",
		Short:     "Print the script by which a shell completes commands and keys",
		Long:      aboutCompletion,
		Args:      arguments("the shell"),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				_, err := io.WriteString(stdout, wordsOfBash)
				return errors.Join(err, root.GenBashCompletionV2(stdout, true))
			case "zsh":
				return root.GenZshCompletion(stdout)
			case "fish":
				return root.GenFishCompletion(stdout, true)
			}
			return fmt.Errorf("completion %q: allowed are bash, zsh and fish", args[0])
		},
	}
}

// wordsOfBash stands in for functions of the package bash-completion, which a machine may lack. The first divides the
// line before the cursor at blanks, and not also at = and :, as bash does; the second completes names of files.
const wordsOfBash = `declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref() {
    local line=${COMP_LINE:0:COMP_POINT}
    read -ra words <<<"$line"
    [[ $line == *[[:blank:]] ]] && words+=("")
    cword=$((${#words[@]} - 1))
    cur=${words[cword]} prev=${words[cword > 0 ? cword - 1 : 0]}
}
declare -F _filedir >/dev/null || _filedir() {
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    compopt -o filenames
}
`

// newVersionCommand returns the command that prints the version, as --version does.
func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
					Program  string `json:"program"`
					Version  string `json:"version"`
					Go       string `json:"go"`
					Platform string `json:"platform"`
					Schema   int    `json:"schema"` // of the events of --json
				}{"launcher", version.String(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, events.Schema})
			}
			return printVersion(cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func printVersion(w io.Writer) error {
	_, err := fmt.Fprintln(w, "launcher", version.String())
	return err
}

// completeFlags defines how shells complete the values of flags.
func completeFlags(cmd *cobra.Command) {
	values := map[string][]string{"map-by": {"slot", "node"}, "tag-output": {"rank", "stream", "none"}}
	for _, c := range append(cmd.Commands(), cmd) {
		// The calls cannot fail: the flags exist and have no completion yet.
		c.Flags().VisitAll(func(f *pflag.Flag) {
			switch f.Name {
			case "set", "vary":
				_ = c.RegisterFlagCompletionFunc(f.Name, completeSetting)
			case "config":
				_ = c.MarkFlagFilename("config", "yaml", "yml", "toml", "json")
			case "map-by", "tag-output":
				_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values[f.Name],
					cobra.ShellCompDirectiveNoFileComp))
			}
		})
	}
}
