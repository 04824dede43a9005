#!/usr/bin/perl
# Answers currency codes with prices that differ from start to start; logs what it was asked.
use strict;
use warnings;
use IO::Socket::INET;

my %cents = (NOK => 5 + int rand 20, SEK => 30 + int rand 20);
my $server = IO::Socket::INET->new(LocalPort => 4100, Listen => 16, ReuseAddr => 1) or die "listen: $@";
while (my $client = $server->accept) {
    my $code = <$client>;
    if (defined $code) {
        $code =~ s/\s+$//;
        open my $log, '>>', '/srv/requests.log' or die "log: $!";
        print $log "$code\n";
        close $log;
        print $client $cents{$code} // 'unknown', "\n";
    }
    close $client;
}
