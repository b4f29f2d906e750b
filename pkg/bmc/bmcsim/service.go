package bmcsim

import (
	"net/http"
)

const sessionsPath = "SessionService/Sessions"

// getRoot is the service root. Nobody needs credentials for it; at the common
// address it is the same for all, and says of $expand what the strongest profile
// can: the others answer as if it had not been asked for.
func getRoot(c *call) answer {
	shape := openBMC()
	uuid, name := identity{seed: c.sim.cfg.Seed}.uuid(), "Root Service"
	if c.alone {
		shape, uuid = c.host.shape, c.host.uuid
	}
	b := obj{
		"@odata.id": c.at(), "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot", "Id": "RootService", "Name": name, "RedfishVersion": "1.13.0", "UUID": uuid,
		"Systems": c.link("Systems"), "Managers": c.link("Managers"), "Chassis": c.link("Chassis"), "UpdateService": c.link("UpdateService"),
		"EventService": c.link("EventService"), "Tasks": c.link("TaskService"), "Registries": c.link("Registries"),
	}
	if shape.vendor != "" {
		b["Vendor"] = shape.vendor
	}
	if shape.product != "" {
		b["Product"] = shape.product
	}
	if c.host == nil || !c.host.Faults().NoSessions {
		b["SessionService"] = c.link("SessionService")
		b["Links"] = obj{"Sessions": c.link("SessionService", "Sessions")}
	}
	if e := shape.expand; e.levels > 0 {
		b["ProtocolFeaturesSupported"] = obj{"ExpandQuery": obj{"ExpandAll": e.all, "NoLinks": true, "Links": e.all, "Levels": true, "MaxLevels": e.levels}}
	}
	return ok(b)
}

func getSessionService(c *call) answer {
	b := c.resource("SessionService.v1_1_8.SessionService", "SessionService", "Session Service")
	b["ServiceEnabled"], b["SessionTimeout"], b["Sessions"] = true, int(sessionIdle.Seconds()), c.link("SessionService", "Sessions")
	return ok(b)
}

type login struct {
	UserName string
	Password string
}

// postSession opens a session for whatever BMCs have these credentials.
func postSession(c *call) answer {
	if !c.known {
		return c.malformed
	}
	f := Faults{}
	if c.host != nil {
		f = c.host.Faults()
	}
	if f.NoSessions {
		return missing(root + "/" + c.path)
	}
	good := len(c.sim.owners(c.key)) > 0
	if c.host != nil {
		good = c.host.opens(c.key)
	}
	if !good {
		c.failedLogin()
		return c.wrongLogin()
	}
	if f.SessionsFull {
		return refuse(http.StatusServiceUnavailable, "SessionLimitExceeded", "The session establishment failed due to the number of simultaneous sessions exceeding the limit of the implementation.")
	}
	x := c.sim.sessions.open(c.login.UserName, c.key)
	b := c.sessionBody(*x)
	return answer{status: http.StatusCreated, body: b, location: c.at("SessionService", "Sessions", x.id), token: x.token}
}

func (c *call) wrongLogin() answer {
	if c.host != nil && c.host.shape.loginRefused == http.StatusBadRequest {
		return refuse(http.StatusBadRequest, "iLO.2.17.UnauthorizedLoginAttempt", "The login attempt was unauthorized.")
	}
	return refuse(http.StatusUnauthorized, "NoValidSession", "Unable to authorize: the user name or the password is wrong.")
}

func (c *call) sessionBody(x session) obj {
	return obj{"@odata.id": c.at("SessionService", "Sessions", x.id), "@odata.type": "#Session.v1_3_0.Session", "Id": x.id, "Name": "User Session", "UserName": x.user}
}

func getSessions(c *call) answer {
	var ids []string
	for _, x := range c.sim.sessions.of(c.key) {
		ids = append(ids, x.id)
	}
	return c.collection("Session", "Sessions", ids...)
}

func getSession(c *call) answer {
	for _, x := range c.sim.sessions.of(c.key) {
		if x.id == c.id(0) {
			return ok(c.sessionBody(x))
		}
	}
	return missing(root + "/" + c.path)
}

func deleteSession(c *call) answer {
	if !c.sim.sessions.close(c.key, c.id(0)) {
		return missing(root + "/" + c.path)
	}
	return done()
}

// The collections of the service hold what the caller's credentials open.

func getSystems(c *call) answer {
	return c.collection("ComputerSystem", "Computer System Collection", c.visible(func(p *profile) string { return p.systemID })...)
}

func getManagers(c *call) answer {
	return c.collection("Manager", "Manager Collection", c.visible(func(p *profile) string { return p.managerID })...)
}

func getChassisCollection(c *call) answer {
	return c.collection("Chassis", "Chassis Collection", c.visible(func(p *profile) string { return p.chassisID })...)
}

func (c *call) visible(own func(*profile) string) []string {
	if c.alone {
		if c.host.Faults().Lost {
			return nil
		}
		return []string{own(c.host.shape)}
	}
	var ids []string
	for _, h := range c.sim.owners(c.key) {
		if !h.Faults().Lost {
			ids = append(ids, h.uuid)
		}
	}
	return ids
}
