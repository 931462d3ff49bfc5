//! What `hooks/prometheus` and `hooks/monitoring` ship, in the programs that it is for: promtool, Prometheus with a node
//! exporter, Nagios, Icinga, the Zabbix agent, and sudo. The hosts that they watch are real deployments.

mod access;
mod daemon;
mod dashboard;
mod exposition;
mod host;
mod icinga;
mod nagios;
mod prometheus;
mod rules;
mod unit;
mod zabbix;
