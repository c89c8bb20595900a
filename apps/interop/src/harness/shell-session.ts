import type { Server } from './servers.ts'

/** A session with every command of the shell, including commands that fail. */
export const shellSession = `
version
whoami
addauth digest bob:pw
whoami
create /t one
create /t two
create /none/x
create /t/ bad
create -e /t/e eph
create -s /t/s- seq
create -s -e /t/se-
create -c /t/cont
create -t 60000 /t/ttl data
create -t 60000 -s /t/ttls data
create -e -c /t/wrong
create /t/e/below
create /t/acl data digest:bob:ikIaKsbtGweaHnb/jKn7OHqbunM=:cdrwa
create /t/badacl data bogus
create /t/nodata
ls /t
ls -s /t
ls -R /t
ls /none
get /t
get -s /t
get /t/nodata
get /none
get -w /t
set /t three
set -s /t four
set -v 9 /t five
set /none x
ls -w /t
create /t/fires
stat /t
stat -w /t/later
create /t/later
stat /none
getAcl /t
getAcl -s /t/acl
setAcl /t/later world:anyone:r
getAcl /t/later
setAcl -v 9 /t/later world:anyone:cdrwa
setAcl -s /t/fires auth::cdrwa
setAcl -R /t/fires world:anyone:cdrwa
set /t/later refused
setAcl /t/later bogus
getAllChildrenNumber /t
getEphemerals
getEphemerals /t/se
getEphemerals /none
sync /t
sync /none
config
config -s
config -c
reconfig -add 5
addWatch /t
addWatch -m PERSISTENT /t/fires
set /t/fires watched
removewatches /t
removewatches /none
removewatches /t/fires -a
setquota -n 5 /t
setquota -b 100 /t
setquota -N 100 /t
setquota -B 10000 /t
listquota /t
create /t/counted 12345
listquota /t
listquota /none
delquota -n /t
delquota -N /t
listquota /t
delquota /t
listquota /t
setquota -n 1 /none
printwatches
printwatches off
delete /t
delete -v 9 /t/counted
delete -v 0 /t/counted
delete /none
deleteall /t/fires
deleteall /none
history
redo 3
nonsense
ls
close
ls /t
connect ADDRESS
ls /t
deleteall /t -b 3
ls /
quit
`.trim()

/** Splits output into lines and masks values that differ from run to run. */
export function mask(text: string, server: Server): string[] {
  return text
    .replaceAll(server.address, 'ADDRESS')
    .split('\n')
    .filter((line) => !line.startsWith('SLF4J'))
    .map((line) =>
      line
        .replace(/^([cmp]Zxid = )0x[1-9a-f][0-9a-f]*/, '$1ZXID')
        .replace(/^([cm]time = ).*/, '$1TIME')
        .replace(/^(ephemeralOwner = )0x[1-9a-f][0-9a-f]*/, '$1SESSION')
        .replace(/session id = 0x[0-9a-f]+/i, 'session id = SESSION'),
    )
}

/** Separates watch events from replies: the shell prints them from another thread, so their position is not deterministic. */
export function splitEvents(lines: readonly string[]): { answers: string[]; events: string[] } {
  const events = lines.filter((line) => line.startsWith('WatchedEvent'))
  const answers = lines.filter(
    (line) => line.trim() !== '' && line !== 'WATCHER::' && !line.startsWith('WatchedEvent'),
  )
  return { answers: withSortedIdentities(answers), events }
}

/** Sorts the identities that whoami prints: Apache ZooKeeper reads them from a hash table, in no defined order. */
function withSortedIdentities(lines: readonly string[]): string[] {
  const isIdentity = (line: string): boolean => /^(ip|digest|world|super): /.test(line)
  const sorted = [...lines]
  for (let start = 0; start < sorted.length; start++) {
    if (!isIdentity(sorted[start]!)) continue
    let end = start
    while (end < sorted.length && isIdentity(sorted[end]!)) end++
    sorted.splice(start, end - start, ...sorted.slice(start, end).sort())
    start = end
  }
  return sorted
}
