use strict; use warnings; use threads; use threads::shared; use Thread::Queue;
my $total :shared = 0;
my $queue = Thread::Queue->new(1 .. 300);
$queue->end;
my @workers = map { threads->create(sub { while (defined(my $item = $queue->dequeue)) { lock($total); $total += $item; } }) } 1 .. 4;
my $child = fork() // die;
if ($child == 0) { exec 'true'; }
waitpid($child, 0);
my $status = $?;
$_->join for @workers;
print "$total $status\n";
