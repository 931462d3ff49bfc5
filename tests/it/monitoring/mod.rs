//! Runs the files in `hooks/prometheus` and `hooks/monitoring` in the programs that they are for: promtool, Prometheus
//! with a node exporter, Nagios, Icinga, the Zabbix agent, and sudo. The monitored hosts are real deployments.

mod access;
mod dashboard;
mod exposition;
mod host;
mod icinga;
mod nagios;
mod prometheus;
mod rules;
mod unit;
mod zabbix;

pub(crate) use rules::promtool;
