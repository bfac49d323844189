// The benchmark of crates/sim/benches/throughput.rs in ns-3: two hosts, two links of 100 Mbit/s and 15 ms with queues of
// 250 packets, and as ns-3 has no scheduler over subflows, one TCP NewReno flow with SACK on each link. Packets have 1500
// bytes from the IP header on, as there.
//
// Usage: two_links SECONDS; prints unique data segments delivered and seconds of wall time.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

int main(int argc, char** argv)
{
    const double seconds = argc > 1 ? std::atof(argv[1]) : 200.0;
    // 1500 bytes less IPv4 (20), TCP (20) and timestamps (12).
    const uint32_t segment = 1448;

    ns3::Config::SetDefault("ns3::TcpL4Protocol::SocketType", ns3::TypeIdValue(ns3::TcpNewReno::GetTypeId()));
    ns3::Config::SetDefault("ns3::TcpSocketBase::Sack", ns3::BooleanValue(true));
    ns3::Config::SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(segment));
    ns3::Config::SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(16u << 20));
    ns3::Config::SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(16u << 20));
    ns3::Config::SetDefault("ns3::TcpSocket::InitialCwnd", ns3::UintegerValue(10));
    ns3::Config::SetDefault("ns3::TcpSocket::DelAckCount", ns3::UintegerValue(2));

    ns3::NodeContainer hosts;
    hosts.Create(2);
    ns3::InternetStackHelper().Install(hosts);

    ns3::PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", ns3::StringValue("100Mbps"));
    link.SetChannelAttribute("Delay", ns3::StringValue("15ms"));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns3::StringValue("250p"));

    ns3::ApplicationContainer sinks;
    for (int path = 0; path < 2; ++path) {
        const ns3::NetDeviceContainer devices = link.Install(hosts);
        const std::string network = "10.0." + std::to_string(path) + ".0";
        ns3::Ipv4AddressHelper addresses(network.c_str(), "255.255.255.0");
        const ns3::Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        // The queue of the device is the only one, as on the links that this is compared with.
        ns3::TrafficControlHelper().Uninstall(devices);
        const uint16_t port = static_cast<uint16_t>(5000 + path);
        ns3::PacketSinkHelper sink("ns3::TcpSocketFactory",
                                   ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), port));
        sinks.Add(sink.Install(hosts.Get(1)));
        ns3::BulkSendHelper source("ns3::TcpSocketFactory",
                                   ns3::InetSocketAddress(interfaces.GetAddress(1), port));
        source.SetAttribute("MaxBytes", ns3::UintegerValue(0));
        source.Install(hosts.Get(0));
    }

    ns3::Simulator::Stop(ns3::Seconds(seconds));
    const auto started = std::chrono::steady_clock::now();
    ns3::Simulator::Run();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - started;
    uint64_t bytes = 0;
    for (uint32_t index = 0; index < sinks.GetN(); ++index) {
        bytes += ns3::DynamicCast<ns3::PacketSink>(sinks.Get(index))->GetTotalRx();
    }
    ns3::Simulator::Destroy();
    std::cout << bytes / segment << " " << wall.count() << std::endl;
    return 0;
}
