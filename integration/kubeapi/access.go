package main

import (
	"fmt"

	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	webhookinit "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizerunion "k8s.io/apiserver/pkg/authorization/union"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
)

// guard lets in the administrator, the users of a file and, with next to no
// rights, everybody; what they may do is RBAC's business.
func (s *apiServer) guard(adminToken, tokensFile string) error {
	admin := &user.DefaultInfo{Name: "admin", UID: "admin", Groups: []string{user.SystemPrivilegedGroup}}
	known := tokenunion.New(tokenfile.New(map[string]*user.DefaultInfo{adminToken: admin}))
	if tokensFile != "" {
		others, err := tokenfile.NewCSV(tokensFile)
		if err != nil {
			return fmt.Errorf("-tokens %s: %w", tokensFile, err)
		}
		known = tokenunion.New(tokenfile.New(map[string]*user.DefaultInfo{adminToken: admin}), others)
	}
	s.config.Authentication.Authenticator = union.NewFailOnError(
		group.NewAuthenticatedGroupAdder(bearertoken.New(known)),
		anonymous.NewAuthenticator(nil),
	)

	roles := s.informers.Rbac().V1()
	byRole := rbac.New(
		&rbac.RoleGetter{Lister: roles.Roles().Lister()},
		&rbac.RoleBindingLister{Lister: roles.RoleBindings().Lister()},
		&rbac.ClusterRoleGetter{Lister: roles.ClusterRoles().Lister()},
		&rbac.ClusterRoleBindingLister{Lister: roles.ClusterRoleBindings().Lister()},
	)
	authorizer, err := authorizerunion.New(
		authorizerunion.NamedAuthorizer{AuthorizerName: "administrators", Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)},
		authorizerunion.NamedAuthorizer{AuthorizerName: "rbac", Authorizer: byRole},
	)
	s.config.Authorization.Authorizer, s.config.RuleResolver = authorizer, byRole
	return err
}

// admit turns on what our users rely on, namespaces' lives and webhooks.
// Admission policies are left out: each write would pay for them.
func (s *apiServer) admit() error {
	objects, err := dynamic.NewForConfig(s.config.LoopbackClientConfig)
	if err != nil {
		return err
	}
	o := genericoptions.NewAdmissionOptions()
	o.DisablePlugins = []string{mutating.PluginName, validating.PluginName}
	return o.ApplyTo(s.config, s.informers, s.client, objects, utilfeature.DefaultFeatureGate, s.config.EffectiveVersion,
		webhookinit.NewPluginInitializer(s.webhookAuth(), webhook.NewDefaultServiceResolver()))
}

func (s *apiServer) webhookAuth() webhook.AuthenticationInfoResolverWrapper {
	return webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil, s.config.LoopbackClientConfig, s.config.TracerProvider)
}
