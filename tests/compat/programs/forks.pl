use strict; use warnings;
my $sum = 0;
for my $number (1 .. 40) {
  pipe(my $from, my $to) or die;
  my $child = fork() // die;
  if ($child == 0) { close $from; print $to $number * $number; close $to; exit $number; }
  close $to;
  $sum += <$from>;
  waitpid($child, 0);
  die "status $?" if $? >> 8 != $number;
}
local $SIG{ALRM} = sub { print "alarm\n" };
alarm 1;
select(undef, undef, undef, 5);
open(my $command, '-|', 'echo', 'from a command') or die;
print <$command>;
print "$sum\n";
system('exit 3');
print $? >> 8, "\n";
