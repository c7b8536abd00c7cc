; The driver of every step program, compiled once. Layouts are mirrored in driver.py.
;
; A program is a list of calls. Run serially, the caller's thread makes them in order. Run by the
; team, calls are cut into units (a range of chunks), and units are grouped in segments: the units of
; a segment may run at the same time, and a segment starts when the one before is done.
;
; Each thread has a head: the segment, and how many units of the thread's share are left. A unit is
; claimed by taking one off a head, first off one's own (so that a thread finds in its cache what it
; wrote before), then off the others'. Whoever finishes the last unit of a segment starts the next
; one; so nobody ever waits for a thread that the system has put aside without work in hand. Which
; thread does which unit has no influence on results.

;                 0 calls, 1 count, 2 units, 3 segments, 4 count, 5 threads, 6 patches, 7 count,
;                 8 externals, 9 slots, 10 error cell, 11 team, 12 record, 13 host call unfinished,
;                 14 the segment from which on the caller may leave, 15 whether it has left,
;                 16 the call and 17 the segment to go on at after a pause, 0 if there was none,
;                 18 nanoseconds after which a loop pauses, 0 if there is no loop, 19 when that is
%Program = type { ptr, i64, ptr, ptr, i64, i64, ptr, i64, ptr, ptr, ptr, ptr, ptr, i64, i64, i64,
                  i64, i64, i64, i64 }
;              0 function, 1 args, 2 begin, 3 end, 4 flags, 5 position in its table
%Unit = type { ptr, ptr, i32, i32, i32, i32 }
;                 0 first unit, 1 units, 2 flags, 3 unused
%Segment = type { i32, i32, i32, i32 }
;               0 slot, 1 external
%Patch = type { i32, i32 }
;               0 somebody sleeps, 1 epoch
%Queue = type { i32, i32, [56 x i8] }
;              0 busy, 1 {program, finished, parting, how its caller treats subnormals}, 2 units pending,
;              3 caller's queue, 4 workers' queue, 5 {threads, quit, turns to spin}, 6 heads,
;              7 the caller's processor, 8 processors to use. Busy things have a cache line of their own.
%Line = type { i64, [56 x i8] }
%Team = type { %Line, { ptr, i64, i64, i64, [32 x i8] }, %Line, %Queue, %Queue,
               { i64, i64, i64, [40 x i8] }, [256 x %Line], %Line, [16 x i64] }
;                 0 team, 1 thread
%Worker = type { ptr, i64 }
;                 0 start, 1 end in nanoseconds (of the last time), 2 thread, 3 nanoseconds in all, 4 times
%Record = type { i64, i64, i64, i64, i64 }
;                 0 kind, 1 how many items, 2 target in calls, 3 in segments, 4 items (cursors of a
;                 loop, targets of a choice: pairs of call and segment), 5 loop
%Steer = type { i32, i32, i32, i32, ptr, ptr }
;               0 iterations done, 1 most iterations, 2 the tape that tells these, 3 the tape it makes; or null
%Loop = type { i64, i64, ptr, ptr }
;               0 slot, 1 start, 2 stride, 3 what to change it with in each iteration, 4 what to add for
;               each row of 5 a tape
%Cursor = type { ptr, i64, i64, i64, i64, ptr }
;              0 rows, or, where a program pauses for lack of room, how many are wanted; 1 room
%Tape = type { i64, i64 }
;                 0 how many, 1 MPI's requests, 2 statuses, 3 MPI_Startall, 4 MPI_Testall, 5 how
;                 often to ask at most, 6 others run in between where the number has none of these bits
%Exchange = type { i32, ptr, ptr, ptr, ptr, i64, i64 }
;                0 how many others, 1 their flags, 2 one's own, 3 its new value, 4 and 5 as the last two of
;                an exchange
%Meeting = type { i64, ptr, ptr, i64, i64, i64 }

; Flags: 1 guard (ends the program if the error cell is set), 2 host (Python, on the caller's thread),
; 4 timed, 8 wake (enough work to wake sleeping threads), 16 control (a %Steer instead of a function,
; alone in its segment). A head: segment << 32 | (threads - 1) << 24 |
; caller only << 23 | units left.

@$SYMBOL = constant [8 x ptr] [ptr @run, ptr @worker, ptr @stop, ptr @land, ptr @exchange, ptr @meet,
                               ptr @stream, ptr @flush]

declare i32 @clock_gettime(i32, ptr)
$RELAX
$FLUSHING

define internal i64 @now() nounwind {
entry:
  %time = alloca { i64, i64 }
  %rc = call i32 @clock_gettime(i32 $CLOCK, ptr %time)
  %s = load i64, ptr %time
  %p = getelementptr { i64, i64 }, ptr %time, i64 0, i32 1
  %ns = load i64, ptr %p
  %scaled = mul i64 %s, 1000000000
  %sum = add i64 %scaled, %ns
  ret i64 %sum
}

$SYSTEM

; Wake whoever sleeps in a queue.
define internal void @wake(ptr %queue) nounwind {
entry:
  %sleepers = load atomic i32, ptr %queue seq_cst, align 4
  %none = icmp eq i32 %sleepers, 0
  br i1 %none, label %done, label %some
some:
  %told = atomicrmw xchg ptr %queue, i32 0 seq_cst
  %epoch = getelementptr %Queue, ptr %queue, i64 0, i32 1
  %old = atomicrmw add ptr %epoch, i32 1 seq_cst
  call void @system_wake(ptr %epoch)
  br label %done
done:
  ret void
}

; A worker that finds itself on the caller's processor leaves it: there, it can only be in the way.
; (The scheduler likes to wake a thread where it was woken from, and takes its time to part the two.)
define internal void @settle(ptr %team) nounwind {
entry:
  %theirs.p = getelementptr %Team, ptr %team, i64 0, i32 7
  %theirs = load atomic i64, ptr %theirs.p monotonic, align 8
  %mine32 = call i32 @system_processor()
  %mine = sext i32 %mine32 to i64
  %same = icmp eq i64 %mine, %theirs
  %known = icmp ult i64 %mine, 1024
  %both = and i1 %same, %known
  br i1 %both, label %choose, label %done
choose:
  %all.p = getelementptr %Team, ptr %team, i64 0, i32 8
  %all = load <16 x i64>, ptr %all.p, align 8
  %mask.p = alloca <16 x i64>
  store <16 x i64> %all, ptr %mask.p
  %at = lshr i64 %mine, 6
  %word.p = getelementptr i64, ptr %mask.p, i64 %at
  %word = load i64, ptr %word.p
  %shift = and i64 %mine, 63
  %bit = shl i64 1, %shift
  %others = xor i64 %bit, -1
  %rest = and i64 %word, %others
  store i64 %rest, ptr %word.p
  %left = load <16 x i64>, ptr %mask.p
  %any = call i64 @llvm.vector.reduce.or.v16i64(<16 x i64> %left)
  %none = icmp eq i64 %any, 0
  br i1 %none, label %done, label %move
move:
  call void @system_move(ptr %mask.p)
  br label %done
done:
  ret void
}
declare i64 @llvm.vector.reduce.or.v16i64(<16 x i64>)

; A unit with flags: a host call, or a timed one.
define internal void @special(ptr %program, ptr %unit, i64 %thread) nounwind {
entry:
  %function = load ptr, ptr %unit
  %args.p = getelementptr %Unit, ptr %unit, i64 0, i32 1
  %args = load ptr, ptr %args.p
  %begin.p = getelementptr %Unit, ptr %unit, i64 0, i32 2
  %begin32 = load i32, ptr %begin.p
  %begin = zext i32 %begin32 to i64
  %end.p = getelementptr %Unit, ptr %unit, i64 0, i32 3
  %end32 = load i32, ptr %end.p
  %end = zext i32 %end32 to i64
  %flags.p = getelementptr %Unit, ptr %unit, i64 0, i32 4
  %flags = load i32, ptr %flags.p
  %timing = and i32 %flags, 4
  %untimed = icmp eq i32 %timing, 0
  br i1 %untimed, label %host, label %before
before:
  %t0 = call i64 @now()
  br label %host
host:
  %start = phi i64 [ 0, %entry ], [ %t0, %before ]
  %hosting = and i32 %flags, 2
  %native = icmp eq i32 %hosting, 0
  br i1 %native, label %direct, label %python
direct:
  ; In a program for many sizes there may be fewer chunks than units.
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %work, label %after
work:
  call void %function(ptr %args, i64 %begin, i64 %end, i64 %thread)
  br label %after
python:
  ; The callback's last deed is to clear the mark: an exception, wherever it strikes, leaves it.
  %mark = getelementptr %Program, ptr %program, i64 0, i32 13
  store i64 1, ptr %mark
  call void %function(ptr %args, i64 %begin, i64 %end, i64 %thread)
  %left = load i64, ptr %mark
  %fine = icmp eq i64 %left, 0
  br i1 %fine, label %after, label %failed
failed:
  %error.p = getelementptr %Program, ptr %program, i64 0, i32 10
  %error = load ptr, ptr %error.p
  store atomic i64 2, ptr %error seq_cst, align 8
  br label %after
after:
  br i1 %untimed, label %done, label %record
record:
  %records.p = getelementptr %Program, ptr %program, i64 0, i32 12
  %records = load ptr, ptr %records.p
  %position.p = getelementptr %Unit, ptr %unit, i64 0, i32 5
  %position32 = load i32, ptr %position.p
  %position = zext i32 %position32 to i64
  %slot = getelementptr %Record, ptr %records, i64 %position
  store i64 %start, ptr %slot
  %stop = call i64 @now()
  %stop.p = getelementptr %Record, ptr %slot, i64 0, i32 1
  store i64 %stop, ptr %stop.p
  %thread.p = getelementptr %Record, ptr %slot, i64 0, i32 2
  store i64 %thread, ptr %thread.p
  %busy.p = getelementptr %Record, ptr %slot, i64 0, i32 3
  %busy = load i64, ptr %busy.p
  %took = sub i64 %stop, %start
  %busy.now = add i64 %busy, %took
  store i64 %busy.now, ptr %busy.p
  %times.p = getelementptr %Record, ptr %slot, i64 0, i32 4
  %times = load i64, ptr %times.p
  %times.now = add i64 %times, 1
  store i64 %times.now, ptr %times.p
  br label %done
done:
  ret void
}

define internal void @execute(ptr %program, ptr %unit, i64 %thread) nounwind {
entry:
  %flags.p = getelementptr %Unit, ptr %unit, i64 0, i32 4
  %flags = load i32, ptr %flags.p
  %slow = and i32 %flags, 6
  %plain = icmp eq i32 %slow, 0
  br i1 %plain, label %direct, label %other
direct:
  %function = load ptr, ptr %unit
  %args.p = getelementptr %Unit, ptr %unit, i64 0, i32 1
  %args = load ptr, ptr %args.p
  %begin.p = getelementptr %Unit, ptr %unit, i64 0, i32 2
  %begin32 = load i32, ptr %begin.p
  %begin = zext i32 %begin32 to i64
  %end.p = getelementptr %Unit, ptr %unit, i64 0, i32 3
  %end32 = load i32, ptr %end.p
  %end = zext i32 %end32 to i64
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %work, label %done
work:
  call void %function(ptr %args, i64 %begin, i64 %end, i64 %thread)
  br label %done
done:
  ret void
other:
  call void @special(ptr %program, ptr %unit, i64 %thread)
  ret void
}

; Move the arguments that move with a loop: so many starts, so many strides, and the changing places.
define internal void @shift(ptr %steer, i64 %starts, i64 %strides, i64 %mask) nounwind {
entry:
  %count.p = getelementptr %Steer, ptr %steer, i64 0, i32 1
  %count32 = load i32, ptr %count.p
  %count = zext i32 %count32 to i64
  %items.p = getelementptr %Steer, ptr %steer, i64 0, i32 4
  %items = load ptr, ptr %items.p
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %cursor = getelementptr %Cursor, ptr %items, i64 %i
  %slot = load ptr, ptr %cursor
  %start.p = getelementptr %Cursor, ptr %cursor, i64 0, i32 1
  %start = load i64, ptr %start.p
  %stride.p = getelementptr %Cursor, ptr %cursor, i64 0, i32 2
  %stride = load i64, ptr %stride.p
  %swap.p = getelementptr %Cursor, ptr %cursor, i64 0, i32 3
  %swap = load i64, ptr %swap.p
  %height.p = getelementptr %Cursor, ptr %cursor, i64 0, i32 4
  %height = load i64, ptr %height.p
  %tape.p = getelementptr %Cursor, ptr %cursor, i64 0, i32 5
  %tape = load ptr, ptr %tape.p
  %rows = load i64, ptr %tape
  %above = mul i64 %height, %rows
  %first = add i64 %start, %above
  %address = load i64, ptr %slot
  %change = and i64 %swap, %mask
  %other = xor i64 %address, %change
  %by.start = mul i64 %first, %starts
  %by.stride = mul i64 %stride, %strides
  %far = add i64 %by.start, %by.stride
  %new = add i64 %other, %far
  store i64 %new, ptr %slot
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

; A record of control flow at %here of the table of calls (%table 0) or of segments (1): gives where
; the program goes on there, beyond its end where it stops or pauses.
define internal i64 @control(ptr %program, ptr %unit, i64 %here, i32 %table) nounwind {
entry:
  %steer = load ptr, ptr %unit
  %kind = load i32, ptr %steer
  %loop.p = getelementptr %Steer, ptr %steer, i64 0, i32 5
  %loop = load ptr, ptr %loop.p
  %next = add i64 %here, 1
  %calls.p = getelementptr %Steer, ptr %steer, i64 0, i32 2
  %calls32 = load i32, ptr %calls.p
  %segments.p = getelementptr %Steer, ptr %steer, i64 0, i32 3
  %segments32 = load i32, ptr %segments.p
  %in.calls = icmp eq i32 %table, 0
  %target32 = select i1 %in.calls, i32 %calls32, i32 %segments32
  %target = zext i32 %target32 to i64
  %args.p = getelementptr %Unit, ptr %unit, i64 0, i32 1
  %args = load ptr, ptr %args.p
  %most.p = getelementptr %Loop, ptr %loop, i64 0, i32 1
  %counted.p = getelementptr %Loop, ptr %loop, i64 0, i32 2
  %tape.p = getelementptr %Loop, ptr %loop, i64 0, i32 3
  switch i32 %kind, label %jump [
    i32 0, label %begin
    i32 1, label %test
    i32 2, label %holds
    i32 3, label %latch
    i32 4, label %end
    i32 5, label %choose
  ]
begin:
  store i64 0, ptr %loop
  %counted = load ptr, ptr %counted.p
  %uncounted = icmp eq ptr %counted, null
  br i1 %uncounted, label %begin.tape, label %begin.count
begin.count:
  %rows = load i64, ptr %counted
  store i64 %rows, ptr %most.p
  br label %begin.tape
begin.tape:
  %wanted = phi i64 [ 1, %begin ], [ %rows, %begin.count ]
  %tape.first = load ptr, ptr %tape.p
  %taping.first = icmp ne ptr %tape.first, null
  br i1 %taping.first, label %begin.room, label %begin.on
begin.room:
  store i64 %wanted, ptr %tape.first
  %room.first.p = getelementptr %Tape, ptr %tape.first, i64 0, i32 1
  %room.first = load i64, ptr %room.first.p
  %enough = icmp ule i64 %wanted, %room.first
  br i1 %enough, label %begin.on, label %pause
begin.on:
  call void @shift(ptr %steer, i64 1, i64 0, i64 0)
  ret i64 %next
holds:
  %flag.p = load ptr, ptr %args
  %flag = load i8, ptr %flag.p
  %off = icmp eq i8 %flag, 0
  br i1 %off, label %jump, label %test
test:
  %done = load i64, ptr %loop
  %most = load i64, ptr %most.p
  %left = icmp ult i64 %done, %most
  br i1 %left, label %stay, label %jump
stay:
  ret i64 %next
latch:
  %error.p = getelementptr %Program, ptr %program, i64 0, i32 10
  %error = load ptr, ptr %error.p
  %state = load atomic i64, ptr %error seq_cst, align 8
  %clear = icmp eq i64 %state, 0
  br i1 %clear, label %again, label %out
again:
  %before = load i64, ptr %loop
  %after = add i64 %before, 1
  store i64 %after, ptr %loop
  call void @shift(ptr %steer, i64 0, i64 1, i64 -1)
  %tape = load ptr, ptr %tape.p
  %taping = icmp ne ptr %tape, null
  br i1 %taping, label %look, label %clock
look:
  %room.p = getelementptr %Tape, ptr %tape, i64 0, i32 1
  %room = load i64, ptr %room.p
  %most.now = load i64, ptr %most.p
  %full = icmp uge i64 %after, %room
  %further = icmp ult i64 %after, %most.now
  %growing = and i1 %full, %further
  br i1 %growing, label %grow, label %clock
grow:
  %row = add i64 %after, 1
  store i64 %row, ptr %tape
  br label %pause
clock:
  %now = call i64 @now()
  %deadline.p = getelementptr %Program, ptr %program, i64 0, i32 19
  %deadline = load i64, ptr %deadline.p
  %late = icmp sgt i64 %now, %deadline
  br i1 %late, label %pause, label %jump
pause:
  ; A loop that has not begun begins anew.
  %anew = phi i64 [ 1, %begin.room ], [ 0, %grow ], [ 0, %clock ]
  %calls = zext i32 %calls32 to i64
  %calls.on = sub i64 %calls, %anew
  %resume.call = getelementptr %Program, ptr %program, i64 0, i32 16
  store i64 %calls.on, ptr %resume.call
  %segments = zext i32 %segments32 to i64
  %segments.on = sub i64 %segments, %anew
  %resume.segment = getelementptr %Program, ptr %program, i64 0, i32 17
  store i64 %segments.on, ptr %resume.segment
  br label %out
out:
  ret i64 4611686018427387904
end:
  %iterations = load i64, ptr %loop
  %tape.last = load ptr, ptr %tape.p
  %taping.last = icmp ne ptr %tape.last, null
  br i1 %taping.last, label %end.tape, label %end.on
end.tape:
  store i64 %iterations, ptr %tape.last
  br label %end.on
end.on:
  %back = sub i64 0, %iterations
  %odd = and i64 %iterations, 1
  %mask = sub i64 0, %odd
  call void @shift(ptr %steer, i64 -1, i64 %back, i64 %mask)
  ret i64 %next
choose:
  %index.p = load ptr, ptr %args
  %index = load i32, ptr %index.p
  %count.p = getelementptr %Steer, ptr %steer, i64 0, i32 1
  %count = load i32, ptr %count.p
  %last = sub i32 %count, 1
  %low = call i32 @llvm.smax.i32(i32 %index, i32 0)
  %chosen32 = call i32 @llvm.smin.i32(i32 %low, i32 %last)
  %chosen = zext i32 %chosen32 to i64
  %items.p = getelementptr %Steer, ptr %steer, i64 0, i32 4
  %items = load ptr, ptr %items.p
  %which = zext i32 %table to i64
  %goal.p = getelementptr [2 x i32], ptr %items, i64 %chosen, i64 %which
  %goal32 = load i32, ptr %goal.p
  %goal = zext i32 %goal32 to i64
  ret i64 %goal
jump:
  ret i64 %target
}
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.smin.i32(i32, i32)

; All calls in order from %from on, on this thread.
define internal void @serial(ptr %program, i64 %from) nounwind {
entry:
  %calls = load ptr, ptr %program
  %count.p = getelementptr %Program, ptr %program, i64 0, i32 1
  %count = load i64, ptr %count.p
  %error.p = getelementptr %Program, ptr %program, i64 0, i32 10
  %error = load ptr, ptr %error.p
  br label %head
head:
  %i = phi i64 [ %from, %entry ], [ %next, %go ], [ %elsewhere, %steer ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %unit = getelementptr %Unit, ptr %calls, i64 %i
  %flags.p = getelementptr %Unit, ptr %unit, i64 0, i32 4
  %flags = load i32, ptr %flags.p
  %steering = and i32 %flags, 16
  %onward = icmp eq i32 %steering, 0
  br i1 %onward, label %plain, label %steer
steer:
  %elsewhere = call i64 @control(ptr %program, ptr %unit, i64 %i, i32 0)
  br label %head
plain:
  %guard = and i32 %flags, 1
  %free = icmp eq i32 %guard, 0
  br i1 %free, label %go, label %test
test:
  %state = load atomic i64, ptr %error seq_cst, align 8
  %clear = icmp eq i64 %state, 0
  br i1 %clear, label %go, label %done
go:
  call void @execute(ptr %program, ptr %unit, i64 0)
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}

; Start segment %from, or end the program. Segments of one unit run here and now.
define internal void @advance(ptr %program, ptr %team, i64 %from, i64 %thread) nounwind {
entry:
  %units.p = getelementptr %Program, ptr %program, i64 0, i32 2
  %units = load ptr, ptr %units.p
  %segments.p = getelementptr %Program, ptr %program, i64 0, i32 3
  %segments = load ptr, ptr %segments.p
  %count.p = getelementptr %Program, ptr %program, i64 0, i32 4
  %count = load i64, ptr %count.p
  %threads.p = getelementptr %Program, ptr %program, i64 0, i32 5
  %threads = load i64, ptr %threads.p
  %error.p = getelementptr %Program, ptr %program, i64 0, i32 10
  %error = load ptr, ptr %error.p
  %leave.p = getelementptr %Program, ptr %program, i64 0, i32 14
  %leave = load i64, ptr %leave.p
  %caller = icmp eq i64 %thread, 0
  %callers = getelementptr %Team, ptr %team, i64 0, i32 3
  %parting = getelementptr %Team, ptr %team, i64 0, i32 1, i32 2
  br label %head
head:
  %i = phi i64 [ %from, %entry ], [ %next, %single ], [ %elsewhere.to, %steer ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %finish
look:
  %segment = getelementptr %Segment, ptr %segments, i64 %i
  %first32 = load i32, ptr %segment
  %first = zext i32 %first32 to i64
  %size.p = getelementptr %Segment, ptr %segment, i64 0, i32 1
  %size32 = load i32, ptr %size.p
  %size = zext i32 %size32 to i64
  %flags.p = getelementptr %Segment, ptr %segment, i64 0, i32 2
  %flags = load i32, ptr %flags.p
  %steering = and i32 %flags, 16
  %onward = icmp eq i32 %steering, 0
  br i1 %onward, label %plain, label %steer
steer:
  %record = getelementptr %Unit, ptr %units, i64 %first
  %elsewhere.to = call i64 @control(ptr %program, ptr %record, i64 %i, i32 1)
  br label %head
plain:
  %guard = and i32 %flags, 1
  %free = icmp eq i32 %guard, 0
  br i1 %free, label %choose, label %test
test:
  %state = load atomic i64, ptr %error seq_cst, align 8
  %clear = icmp eq i64 %state, 0
  br i1 %clear, label %choose, label %finish
choose:
  %rest = icmp uge i64 %i, %leave
  br i1 %rest, label %leaving, label %hosts
leaving:
  ; What the caller waits for is done. After an error it stays to the end, which is near.
  %state.now = load atomic i64, ptr %error seq_cst, align 8
  %fine = icmp eq i64 %state.now, 0
  br i1 %fine, label %part, label %hosts
part:
  %parted.before = atomicrmw xchg ptr %parting, i64 1 seq_cst
  %known = icmp ne i64 %parted.before, 0
  %silent = or i1 %known, %caller
  br i1 %silent, label %hosts, label %dismiss
dismiss:
  call void @wake(ptr %callers)
  br label %hosts
hosts:
  %parted = phi i1 [ false, %choose ], [ false, %leaving ], [ true, %part ], [ true, %dismiss ]
  %hosting = and i32 %flags, 2
  %host = icmp ne i32 %hosting, 0
  %elsewhere = icmp ne i64 %thread, 0
  %private = and i1 %host, %elsewhere
  %one = icmp eq i64 %size, 1
  %shared = xor i1 %private, true
  %gone = and i1 %parted, %caller
  %staying = xor i1 %gone, true
  %brief = and i1 %one, %shared
  %here = and i1 %brief, %staying
  br i1 %here, label %single, label %publish
single:
  %unit = getelementptr %Unit, ptr %units, i64 %first
  call void @execute(ptr %program, ptr %unit, i64 %thread)
  %next = add i64 %i, 1
  br label %head
publish:
  %pending = getelementptr %Team, ptr %team, i64 0, i32 2
  store atomic i64 %size, ptr %pending monotonic, align 8
  %seg = shl i64 %i, 32
  %width = sub i64 %threads, 1
  %width.s = shl i64 %width, 24
  %private64 = zext i1 %private to i64
  %private.s = shl i64 %private64, 23
  %top0 = or i64 %seg, %width.s
  %top = or i64 %top0, %private.s
  br label %share
share:
  %t = phi i64 [ 0, %publish ], [ %t1, %share ]
  %low = phi i64 [ 0, %publish ], [ %high, %share ]
  %t1 = add i64 %t, 1
  %scaled = mul i64 %size, %t1
  %even = udiv i64 %scaled, %threads
  %high = select i1 %private, i64 1, i64 %even
  %mine = sub i64 %high, %low
  %word = or i64 %top, %mine
  %slot = getelementptr %Team, ptr %team, i64 0, i32 6, i64 %t
  store atomic i64 %word, ptr %slot release, align 8
  %again = icmp ult i64 %t1, %threads
  br i1 %again, label %share, label %shared.out
shared.out:
  fence seq_cst
  %waking = and i32 %flags, 8
  %enough = icmp eq i32 %waking, 0
  %quiet = and i1 %enough, %staying
  br i1 %quiet, label %tell, label %rouse
rouse:
  %workers = getelementptr %Team, ptr %team, i64 0, i32 4
  call void @wake(ptr %workers)
  br label %tell
finish:
  %finished = getelementptr %Team, ptr %team, i64 0, i32 1, i32 1
  store atomic i64 1, ptr %finished release, align 8
  store atomic i64 1, ptr %parting release, align 8
  fence seq_cst
  br label %tell
tell:
  br i1 %caller, label %done, label %call
call:
  call void @wake(ptr %callers)
  br label %done
done:
  ret void
}

; Claim and do units until told to leave: the caller when the program is finished, or as much of it as
; it waits for; workers when the team is dissolved.
; Units are published by writing every head, one's own included, so a thread that has found nothing
; looks at nothing but its own head until that changes: cache lines move between cores only with work.
define internal void @work(ptr %team, i64 %me, ptr %leave.p) nounwind {
entry:
  %caller = icmp eq i64 %me, 0
  %callers = getelementptr %Team, ptr %team, i64 0, i32 3
  %workers = getelementptr %Team, ptr %team, i64 0, i32 4
  %queue = select i1 %caller, ptr %callers, ptr %workers
  %epoch.p = getelementptr %Queue, ptr %queue, i64 0, i32 1
  %size.p = getelementptr %Team, ptr %team, i64 0, i32 5
  %turns.p = getelementptr %Team, ptr %team, i64 0, i32 5, i32 2
  %program.p = getelementptr %Team, ptr %team, i64 0, i32 1
  %flushing.p = getelementptr %Team, ptr %team, i64 0, i32 1, i32 3
  %pending = getelementptr %Team, ptr %team, i64 0, i32 2
  %own = getelementptr %Team, ptr %team, i64 0, i32 6, i64 %me
  br label %fresh
fresh:
  %leave.now = load atomic i64, ptr %leave.p acquire, align 8
  %free = icmp eq i64 %leave.now, 0
  br i1 %free, label %begin, label %out
begin:
  br label %scan
scan:
  %spins = phi i64 [ 0, %begin ], [ %spins1, %changed ], [ %spins1, %enlist ]
  %enlisted = phi i1 [ false, %begin ], [ false, %changed ], [ true, %enlist ]
  %epoch = phi i32 [ 0, %begin ], [ 0, %changed ], [ %epoch.now, %enlist ]
  %seen = load atomic i64, ptr %own acquire, align 8
  %size = load atomic i64, ptr %size.p monotonic, align 8
  br label %look
look:
  %v = phi i64 [ 0, %scan ], [ %v1, %skip ]
  %h0 = add i64 %me, %v
  %over = icmp uge i64 %h0, %size
  %h1 = sub i64 %h0, %size
  %h = select i1 %over, i64 %h1, i64 %h0
  %head = getelementptr %Team, ptr %team, i64 0, i32 6, i64 %h
  br label %try
try:
  %word = load atomic i64, ptr %head acquire, align 8
  %left = and i64 %word, 8388607
  %empty = icmp eq i64 %left, 0
  br i1 %empty, label %skip, label %allowed
allowed:
  %width0 = lshr i64 %word, 24
  %width = and i64 %width0, 255
  %beyond = icmp ugt i64 %me, %width
  %private0 = and i64 %word, 8388608
  %private1 = icmp ne i64 %private0, 0
  %elsewhere = icmp ne i64 %me, 0
  %private = and i1 %private1, %elsewhere
  %barred = or i1 %beyond, %private
  br i1 %barred, label %skip, label %claim
claim:
  %less = sub i64 %word, 1
  %pair = cmpxchg ptr %head, i64 %word, i64 %less acq_rel monotonic
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %mine, label %try
skip:
  %v1 = add i64 %v, 1
  %on = icmp ult i64 %v1, %size
  br i1 %on, label %look, label %nothing
mine:
  ; Now that a unit is ours, the program cannot end, so the team's pointer to it is good.
  %program = load ptr, ptr %program.p
  %flushing = load i64, ptr %flushing.p
  call void @flush_as(i64 %flushing)
  %units.p = getelementptr %Program, ptr %program, i64 0, i32 2
  %units = load ptr, ptr %units.p
  %segments.p = getelementptr %Program, ptr %program, i64 0, i32 3
  %segments = load ptr, ptr %segments.p
  %seg = lshr i64 %word, 32
  %segment = getelementptr %Segment, ptr %segments, i64 %seg
  %first32 = load i32, ptr %segment
  %first = zext i32 %first32 to i64
  %count.p = getelementptr %Segment, ptr %segment, i64 0, i32 1
  %count32 = load i32, ptr %count.p
  %count = zext i32 %count32 to i64
  %threads = add i64 %width, 1
  %v.next = add i64 %h, 1
  %scaled = mul i64 %count, %v.next
  %even = udiv i64 %scaled, %threads
  %share.end = select i1 %private1, i64 1, i64 %even
  %end = add i64 %first, %share.end
  br label %do
do:
  ; As long as there is more on this head, which we cannot lose before we report, take it.
  %left.now = phi i64 [ %left, %mine ], [ %more.left, %more.claim ]
  %done = phi i64 [ 0, %mine ], [ %done1, %more.claim ]
  %rank = sub i64 %end, %left.now
  %unit = getelementptr %Unit, ptr %units, i64 %rank
  call void @execute(ptr %program, ptr %unit, i64 %me)
  %done1 = add i64 %done, 1
  br label %more
more:
  %more.word = load atomic i64, ptr %head acquire, align 8
  %more.left = and i64 %more.word, 8388607
  %dry = icmp eq i64 %more.left, 0
  br i1 %dry, label %report, label %more.try
more.try:
  %more.less = sub i64 %more.word, 1
  %more.pair = cmpxchg ptr %head, i64 %more.word, i64 %more.less acq_rel monotonic
  %more.won = extractvalue { i64, i1 } %more.pair, 1
  br i1 %more.won, label %more.claim, label %more
more.claim:
  br label %do
report:
  %before = atomicrmw sub ptr %pending, i64 %done1 acq_rel
  %last = icmp eq i64 %before, %done1
  br i1 %last, label %onward, label %fresh
onward:
  %following = add i64 %seg, 1
  call void @advance(ptr %program, ptr %team, i64 %following, i64 %me)
  br label %fresh
nothing:
  br i1 %enlisted, label %still, label %idle
idle:
  %spins0 = phi i64 [ %spins, %nothing ], [ %spins1, %turn ]
  %spins1 = add i64 %spins0, 1
  %leave = load atomic i64, ptr %leave.p acquire, align 8
  %stay = icmp eq i64 %leave, 0
  br i1 %stay, label %rest, label %out
rest:
  %turns = load atomic i64, ptr %turns.p monotonic, align 8
  %tired = icmp ugt i64 %spins1, %turns
  br i1 %tired, label %enlist, label %spin
spin:
  call void @relax()
  br i1 %caller, label %turn, label %apart
apart:
  call void @settle(ptr %team)
  br label %turn
turn:
  %now = load atomic i64, ptr %own acquire, align 8
  %same = icmp eq i64 %now, %seen
  br i1 %same, label %idle, label %changed
changed:
  br label %scan
enlist:
  ; Announce the sleep, then look once more: whoever publishes either sees us or is seen.
  %epoch.now = load atomic i32, ptr %epoch.p seq_cst, align 4
  %old = atomicrmw xchg ptr %queue, i32 1 seq_cst
  fence seq_cst
  br label %scan
still:
  %leave.late = load atomic i64, ptr %leave.p acquire, align 8
  %stay.late = icmp eq i64 %leave.late, 0
  br i1 %stay.late, label %sleep, label %out
sleep:
  call void @system_wait(ptr %epoch.p, i32 %epoch)
  br i1 %caller, label %fresh, label %woken
woken:
  call void @settle(ptr %team)
  br label %fresh
out:
  ret void
}

; One step. Gives the error cell's state. Or does nothing and gives -1 - i if external i has no
; address, the least integer if the team has fewer threads than the program wants (after a fork).
define internal i64 @run(ptr %program) nounwind {
entry:
  %resume.call.p = getelementptr %Program, ptr %program, i64 0, i32 16
  %resume.call = load i64, ptr %resume.call.p
  %resume.segment.p = getelementptr %Program, ptr %program, i64 0, i32 17
  %resume.segment = load i64, ptr %resume.segment.p
  %patience.p = getelementptr %Program, ptr %program, i64 0, i32 18
  %patience = load i64, ptr %patience.p
  %hasty = icmp eq i64 %patience, 0
  br i1 %hasty, label %fresh, label %timed
timed:
  %now = call i64 @now()
  %deadline = add i64 %now, %patience
  %deadline.p = getelementptr %Program, ptr %program, i64 0, i32 19
  store i64 %deadline, ptr %deadline.p
  %resumed = icmp ne i64 %resume.call, 0
  br i1 %resumed, label %whole.again, label %fresh
fresh:
  %patches.p = getelementptr %Program, ptr %program, i64 0, i32 6
  %patches = load ptr, ptr %patches.p
  %count.p = getelementptr %Program, ptr %program, i64 0, i32 7
  %count = load i64, ptr %count.p
  %externals.p = getelementptr %Program, ptr %program, i64 0, i32 8
  %externals = load ptr, ptr %externals.p
  %slots.p = getelementptr %Program, ptr %program, i64 0, i32 9
  %slots = load ptr, ptr %slots.p
  br label %head
head:
  %i = phi i64 [ 0, %fresh ], [ %next, %put ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %body, label %ready
body:
  %patch = getelementptr %Patch, ptr %patches, i64 %i
  %slot32 = load i32, ptr %patch
  %slot = zext i32 %slot32 to i64
  %which.p = getelementptr %Patch, ptr %patch, i64 0, i32 1
  %which32 = load i32, ptr %which.p
  %which = zext i32 %which32 to i64
  %from = getelementptr i64, ptr %externals, i64 %which
  %address = load i64, ptr %from
  %missing = icmp eq i64 %address, 0
  br i1 %missing, label %unbound, label %put
put:
  %to = getelementptr i64, ptr %slots, i64 %slot
  store i64 %address, ptr %to
  %next = add i64 %i, 1
  br label %head
unbound:
  %negative = xor i64 %which, -1
  ret i64 %negative
ready:
  %error.p = getelementptr %Program, ptr %program, i64 0, i32 10
  %error = load ptr, ptr %error.p
  store atomic i64 0, ptr %error seq_cst, align 8
  br label %whole.again
whole.again:
  %segments.p = getelementptr %Program, ptr %program, i64 0, i32 4
  %segments = load i64, ptr %segments.p
  %short = icmp eq i64 %segments, 0
  br i1 %short, label %alone, label %ask
ask:
  %team.p = getelementptr %Program, ptr %program, i64 0, i32 11
  %team = load ptr, ptr %team.p
  %size.p = getelementptr %Team, ptr %team, i64 0, i32 5
  %size = load atomic i64, ptr %size.p acquire, align 8
  %threads.p = getelementptr %Program, ptr %program, i64 0, i32 5
  %threads = load i64, ptr %threads.p
  %enough = icmp uge i64 %size, %threads
  br i1 %enough, label %seize, label %understaffed
understaffed:
  ret i64 -9223372036854775808
seize:
  ; If another program has the team, do without.
  %pair = cmpxchg ptr %team, i64 0, i64 1 acq_rel monotonic
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %together, label %alone
together:
  %program.p = getelementptr %Team, ptr %team, i64 0, i32 1
  store ptr %program, ptr %program.p
  %flushing.p = getelementptr %Team, ptr %team, i64 0, i32 1, i32 3
  %flushing = call i64 @flushing()
  store i64 %flushing, ptr %flushing.p
  %here32 = call i32 @system_processor()
  %here = sext i32 %here32 to i64
  %here.p = getelementptr %Team, ptr %team, i64 0, i32 7
  store atomic i64 %here, ptr %here.p monotonic, align 8
  %finished = getelementptr %Team, ptr %team, i64 0, i32 1, i32 1
  store atomic i64 0, ptr %finished seq_cst, align 8
  %parting = getelementptr %Team, ptr %team, i64 0, i32 1, i32 2
  store atomic i64 0, ptr %parting seq_cst, align 8
  store i64 0, ptr %resume.call.p
  store i64 0, ptr %resume.segment.p
  call void @advance(ptr %program, ptr %team, i64 %resume.segment, i64 0)
  call void @work(ptr %team, i64 0, ptr %parting)
  %leave.p = getelementptr %Program, ptr %program, i64 0, i32 14
  store i64 4611686018427387904, ptr %leave.p
  %finished.now = load atomic i64, ptr %finished acquire, align 8
  %whole = icmp ne i64 %finished.now, 0
  br i1 %whole, label %dismissed, label %aloft
aloft:
  %aloft.p = getelementptr %Program, ptr %program, i64 0, i32 15
  store i64 1, ptr %aloft.p
  ret i64 0
dismissed:
  store atomic i64 0, ptr %team release, align 8
  br label %done
alone:
  store i64 0, ptr %resume.call.p
  store i64 0, ptr %resume.segment.p
  call void @serial(ptr %program, i64 %resume.call)
  br label %done
done:
  %resume.next = load i64, ptr %resume.call.p
  %through = icmp eq i64 %resume.next, 0
  br i1 %through, label %through.all, label %paused
paused:
  ret i64 -9223372036854775807
through.all:
  %error.end = getelementptr %Program, ptr %program, i64 0, i32 10
  %error.cell = load ptr, ptr %error.end
  %state = load atomic i64, ptr %error.cell seq_cst, align 8
  ret i64 %state
}

; The rest of a step that the caller has left, if it has: done when this returns.
define internal i64 @land(ptr %program) nounwind {
entry:
  %aloft.p = getelementptr %Program, ptr %program, i64 0, i32 15
  %aloft = load i64, ptr %aloft.p
  %landed = icmp eq i64 %aloft, 0
  br i1 %landed, label %done, label %join
join:
  %team.p = getelementptr %Program, ptr %program, i64 0, i32 11
  %team = load ptr, ptr %team.p
  %finished = getelementptr %Team, ptr %team, i64 0, i32 1, i32 1
  %flushing = call i64 @flushing()
  call void @work(ptr %team, i64 0, ptr %finished)
  call void @flush_as(i64 %flushing)
  store i64 0, ptr %aloft.p
  store atomic i64 0, ptr %team release, align 8
  br label %done
done:
  ret i64 0
}

; The whole life of a worker thread.
define internal ptr @worker(ptr %self) nounwind {
entry:
  %team = load ptr, ptr %self
  %me.p = getelementptr %Worker, ptr %self, i64 0, i32 1
  %me = load i64, ptr %me.p
  %quit = getelementptr %Team, ptr %team, i64 0, i32 5, i32 1
  call void @work(ptr %team, i64 %me, ptr %quit)
  ret ptr null
}

; Make this thread flush subnormal numbers (1) or keep them (0). Gives what holds then: 0 if they are
; kept, -1 where the processor's mode is unknown.
define internal i64 @flush(ptr %wanted) nounwind {
  %on = load i64, ptr %wanted
  %bits = sub i64 0, %on
  call void @flush_as(i64 %bits)
  %now = call i64 @flushing()
  ret i64 %now
}

; Ask the workers to leave.
define internal i64 @stop(ptr %team) nounwind {
entry:
  %quit = getelementptr %Team, ptr %team, i64 0, i32 5, i32 1
  store atomic i64 1, ptr %quit seq_cst, align 8
  fence seq_cst
  %workers = getelementptr %Team, ptr %team, i64 0, i32 4
  call void @wake(ptr %workers)
  ret i64 0
}

; Start messages that were prepared once, and ask for their end: 1 if all have arrived, 0 if not yet,
; MPI's error below 0. Whoever shares a processor with the other ranks lets them go on meanwhile.
define internal i64 @exchange(ptr %exchange) nounwind {
entry:
  %flag.p = alloca i32
  %count = load i32, ptr %exchange
  %requests.p = getelementptr %Exchange, ptr %exchange, i64 0, i32 1
  %requests = load ptr, ptr %requests.p
  %statuses.p = getelementptr %Exchange, ptr %exchange, i64 0, i32 2
  %statuses = load ptr, ptr %statuses.p
  %start.p = getelementptr %Exchange, ptr %exchange, i64 0, i32 3
  %start = load ptr, ptr %start.p
  %test.p = getelementptr %Exchange, ptr %exchange, i64 0, i32 4
  %test = load ptr, ptr %test.p
  %most.p = getelementptr %Exchange, ptr %exchange, i64 0, i32 5
  %most = load i64, ptr %most.p
  %mask.p = getelementptr %Exchange, ptr %exchange, i64 0, i32 6
  %mask = load i64, ptr %mask.p
  %started = call i32 %start(i32 %count, ptr %requests)
  %begun = icmp eq i32 %started, 0
  br i1 %begun, label %ask, label %failed
ask:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  %tested = call i32 %test(i32 %count, ptr %requests, ptr %flag.p, ptr %statuses)
  %fine = icmp eq i32 %tested, 0
  br i1 %fine, label %look, label %failed
look:
  %flag = load i32, ptr %flag.p
  %missing = icmp eq i32 %flag, 0
  br i1 %missing, label %more, label %arrived
arrived:
  ret i64 1
more:
  %next = add i64 %i, 1
  %left = icmp ult i64 %next, %most
  br i1 %left, label %wait, label %late
late:
  ret i64 0
wait:
  %low = and i64 %next, %mask
  %due = icmp eq i64 %low, 0
  br i1 %due, label %yield, label %again
yield:
  %yielded = call i32 @sched_yield()
  br label %again
again:
  br label %ask
failed:
  %error = phi i32 [ %started, %entry ], [ %tested, %ask ]
  %wide = sext i32 %error to i64
  %negative = sub i64 0, %wide
  ret i64 %negative
}
declare i32 @sched_yield()

; Raise a flag in memory that processes share, and wait until the others' have the same value: 1 if they
; do, 0 if not yet. What was written to that memory before can be read by whoever has seen the flag.
define internal i64 @meet(ptr %meeting) nounwind {
entry:
  %count = load i64, ptr %meeting
  %flags.p = getelementptr %Meeting, ptr %meeting, i64 0, i32 1
  %flags = load ptr, ptr %flags.p
  %own.p = getelementptr %Meeting, ptr %meeting, i64 0, i32 2
  %own = load ptr, ptr %own.p
  %value.p = getelementptr %Meeting, ptr %meeting, i64 0, i32 3
  %value = load i64, ptr %value.p
  %most.p = getelementptr %Meeting, ptr %meeting, i64 0, i32 4
  %most = load i64, ptr %most.p
  %mask.p = getelementptr %Meeting, ptr %meeting, i64 0, i32 5
  %mask = load i64, ptr %mask.p
  store atomic i64 %value, ptr %own release, align 8
  br label %ask
ask:
  %member = phi i64 [ 0, %entry ], [ %following, %here ], [ %member, %again ]
  %asked = phi i64 [ 0, %entry ], [ %asked, %here ], [ %next, %again ]
  %all = icmp eq i64 %member, %count
  br i1 %all, label %met, label %look
look:
  %flag.p = getelementptr ptr, ptr %flags, i64 %member
  %flag = load ptr, ptr %flag.p
  %theirs = load atomic i64, ptr %flag acquire, align 8
  %same = icmp eq i64 %theirs, %value
  br i1 %same, label %here, label %missing
here:
  %following = add i64 %member, 1
  br label %ask
met:
  ret i64 1
missing:
  %next = add i64 %asked, 1
  %left = icmp ult i64 %next, %most
  br i1 %left, label %wait, label %late
late:
  ret i64 0
wait:
  %low = and i64 %next, %mask
  %due = icmp eq i64 %low, 0
  br i1 %due, label %yield, label %spin
yield:
  %yielded = call i32 @sched_yield()
  br label %again
spin:
  call void @relax()
  br label %again
again:
  br label %ask
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Copy bytes past the caches. A cache line that another processor has read lately is written so
; without asking that processor for it.
define internal i64 @stream(ptr %to, ptr %from, i64 %bytes) nounwind {
entry:
  %address = ptrtoint ptr %to to i64
  %negative = sub i64 0, %address
  %gap = and i64 %negative, 63
  %short = icmp ult i64 %bytes, %gap
  %head = select i1 %short, i64 %bytes, i64 %gap
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %head, i1 false)
  br label %next
next:
  %at = phi i64 [ %head, %entry ], [ %end, %line ]
  %end = add i64 %at, 64
  %more = icmp ule i64 %end, %bytes
  br i1 %more, label %line, label %last
line:
  %source = getelementptr i8, ptr %from, i64 %at
  %target = getelementptr i8, ptr %to, i64 %at
  %data = load <8 x i64>, ptr %source, align 1
  store <8 x i64> %data, ptr %target, align 64, !nontemporal !0
  br label %next
last:
  %rest = sub i64 %bytes, %at
  %source.last = getelementptr i8, ptr %from, i64 %at
  %target.last = getelementptr i8, ptr %to, i64 %at
  call void @llvm.memcpy.p0.p0.i64(ptr %target.last, ptr %source.last, i64 %rest, i1 false)
  fence seq_cst  ; such stores are ordered only after this
  ret i64 0
}
!0 = !{i32 1}
