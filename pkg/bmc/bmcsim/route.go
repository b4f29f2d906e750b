package bmcsim

import (
	"net/http"
	"strings"
)

// handler answers one kind of request.
type handler func(*call) answer

// route is a node of the tree of paths below /redfish/v1.
type route struct {
	kind string // its path, with {} for ids
	do   map[string]handler
	kids map[string]*route
	any  *route
}

// on adds a handler at a path.
func (r *route) on(method, path string, h handler) {
	n := r
	for part := range strings.SplitSeq(path, "/") {
		if part != "" {
			n = n.child(part)
		}
	}
	n.kind = path
	if n.do == nil {
		n.do = map[string]handler{}
	}
	n.do[method] = h
}

func (r *route) child(part string) *route {
	if part == "{}" {
		if r.any == nil {
			r.any = &route{}
		}
		return r.any
	}
	if r.kids == nil {
		r.kids = map[string]*route{}
	}
	if r.kids[part] == nil {
		r.kids[part] = &route{}
	}
	return r.kids[part]
}

// match finds the node of a path, and the ids in it; nil if there is none.
func (r *route) match(path []string) (*route, []string) {
	n := r
	var ids []string
	for _, part := range path {
		if k := n.kids[part]; k != nil {
			n = k
			continue
		}
		if n.any == nil {
			return nil, nil
		}
		n, ids = n.any, append(ids, part)
	}
	if n.do == nil {
		return nil, nil
	}
	return n, ids
}

// routes is the map of the whole service.
func routes() *route {
	r := &route{}
	get := func(path string, h handler) { r.on(http.MethodGet, path, h) }
	post := func(path string, h handler) { r.on(http.MethodPost, path, h) }
	patch := func(path string, h handler) { r.on(http.MethodPatch, path, h) }
	del := func(path string, h handler) { r.on(http.MethodDelete, path, h) }

	get("", getRoot)
	get("SessionService", getSessionService)
	get("SessionService/Sessions", getSessions)
	post("SessionService/Sessions", postSession)
	get("SessionService/Sessions/{}", getSession)
	del("SessionService/Sessions/{}", deleteSession)
	get("Registries", getRegistries)
	get("Registries/{}", getRegistryFile)
	get("Registries/{}/registry", getRegistry)

	get("Systems", getSystems)
	get("Systems/{}", getSystem)
	patch("Systems/{}", patchSystem)
	get("Systems/{}/ResetActionInfo", getResetInfo)
	post("Systems/{}/Actions/ComputerSystem.Reset", postReset)
	get("Systems/{}/Processors", getProcessors)
	get("Systems/{}/Processors/{}", getProcessor)
	get("Systems/{}/Memory", getMemory)
	get("Systems/{}/Memory/{}", getModule)
	get("Systems/{}/EthernetInterfaces", getInterfaces)
	get("Systems/{}/EthernetInterfaces/{}", getInterface)
	get("Systems/{}/SecureBoot", getSecureBoot)
	patch("Systems/{}/SecureBoot", patchSecureBoot)
	get("Systems/{}/Bios", getBios)
	post("Systems/{}/Bios/Actions/Bios.ResetBios", postResetBios)
	get("Systems/{}/Bios/{}", getPendingBios)
	patch("Systems/{}/Bios/{}", patchPendingBios)
	get("Systems/{}/SimpleStorage", getSimpleStorages)
	get("Systems/{}/SimpleStorage/{}", getSimpleStorage)
	get("Systems/{}/Storage", getStorages)
	get("Systems/{}/Storage/{}", getStorage)
	get("Systems/{}/Storage/{}/Drives/{}", getDrive)
	get("Systems/{}/Storage/{}/Volumes", getVolumes)
	post("Systems/{}/Storage/{}/Volumes", postVolume)
	get("Systems/{}/Storage/{}/Volumes/{}", getVolume)
	del("Systems/{}/Storage/{}/Volumes/{}", deleteVolume)

	get("Managers", getManagers)
	get("Managers/{}", getManager)
	for _, home := range []string{"Systems", "Managers"} {
		get(home+"/{}/VirtualMedia", getMediaCollection)
		get(home+"/{}/VirtualMedia/{}", getMedia)
		post(home+"/{}/VirtualMedia/{}/Actions/VirtualMedia.InsertMedia", postInsert)
		post(home+"/{}/VirtualMedia/{}/Actions/VirtualMedia.EjectMedia", postEject)
	}

	get("Chassis", getChassisCollection)
	get("Chassis/{}", getChassis)
	get("Chassis/{}/Drives/{}", getChassisDrive)
	get("Chassis/{}/NetworkAdapters", getAdapters)
	get("Chassis/{}/NetworkAdapters/{}", getAdapter)
	get("Chassis/{}/NetworkAdapters/{}/NetworkDeviceFunctions", getFunctions)
	get("Chassis/{}/NetworkAdapters/{}/NetworkDeviceFunctions/{}", getFunction)
	get("Chassis/{}/NetworkAdapters/{}/Ports", getPorts)
	get("Chassis/{}/NetworkAdapters/{}/Ports/{}", getPort)

	get("UpdateService", getUpdateService)
	get("UpdateService/FirmwareInventory", getFirmwares)
	get("UpdateService/FirmwareInventory/{}", getFirmware)
	post("UpdateService/Actions/UpdateService.SimpleUpdate", postUpdate)
	get("TaskService", getTaskService)
	get("TaskService/Tasks", getTasks)
	get("TaskService/Tasks/{}", getTask)
	get("TaskService/Tasks/{}/Monitor", getTask)

	get("EventService", getEventService)
	get("EventService/SSE", getStream)
	get("EventService/Subscriptions", getSubscriptions)
	post("EventService/Subscriptions", postSubscription)
	get("EventService/Subscriptions/{}", getSubscription)
	del("EventService/Subscriptions/{}", deleteSubscription)
	post("EventService/Actions/EventService.SubmitTestEvent", postTestEvent)
	return r
}
