require 'etc'
require 'timeout'
mutex = Mutex.new
total = 0
threads = 4.times.map { |index| Thread.new { 200.times { mutex.synchronize { total += index } } } }
children = 5.times.map { |number| fork { Thread.new { exit!(number) }.join } }
puts children.map { |child| Process.wait2(child)[1].exitstatus }.inspect
threads.each(&:join)
puts total, `echo from a shell`, IO.popen(%w[tr a-z A-Z], 'r+') { |pipe| pipe.puts 'words'; pipe.close_write; pipe.read }
begin
  Timeout.timeout(0.2) { Queue.new.pop }
rescue Timeout::Error
  puts 'timeout'
end
