// The fields of a cluster that is a platform file of SimGrid. expand_platform() in sim/experiment replaces it by the
// hosts and links that SimGrid makes of it before build() could be called, so that nothing here knows the library.

#include "sim/core/diagnostic.hpp"
#include "topologies/cluster_writer.hpp"

namespace stagecraft::topology_generators {
namespace {

const config::MapSpec kSimgridXmlFields{
    "A platform file of SimGrid: hosts become devices, links and routes are taken as SimGrid has them.",
    {config::text("simgrid_xml").doc("Path of the file, relative to the folder of the file that names it."),
     config::list("hosts", config::text("host"))
         .optional()
         .doc("The hosts that are devices, in order; * stands for any letters. Default: all hosts, n2 before n10."),
     type_field().optional().doc("Type of all devices. Default: a type from the speed and cores of each host."),
     config::quantity("memory", config::Dimension::Size)
         .optional()
         .doc("Memory of each host that has no property `memory`. Required without `type`."),
     config::quantity("memory_bandwidth", config::Dimension::Bandwidth)
         .optional()
         .doc("Memory bandwidth of each host. Default: memory never limits computation, as in SimGrid.")}};

}  // namespace

extern const TopologyGenerator simgrid_xml{
    .name = "simgrid_xml",
    .summary = "A platform file of SimGrid, with all kinds of zones that have routes.",
    .source = "Casanova et al., Versatile, scalable and accurate simulation of distributed applications, JPDC 2014",
    .fields = &kSimgridXmlFields,
    .build = [](const config::Value&) -> Cluster {
      throw InternalError("a platform file was not replaced by what is in it");
    },
};

}  // namespace stagecraft::topology_generators
