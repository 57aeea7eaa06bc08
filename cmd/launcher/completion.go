package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

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
