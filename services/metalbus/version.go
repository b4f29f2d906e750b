package metalbus

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/metalbus/metalbus/pkg/service"
)

func (t Tool) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say what this program was built from", Args: arguments(0, 0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(t.Env.Out, service.ReadBuild())
			return err
		},
	}
}
