#!/usr/bin/env bash
# Makes the certificates of this folder anew. Needs openssl 3 and, for the two stores of Java, keytool.
set -euo pipefail
cd "$(dirname "$0")"
days=36500
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

authority() { # name, subject
  openssl ecparam -name prime256v1 -genkey -noout -out "$work/$1.key"
  openssl req -x509 -new -key "$work/$1.key" -days $days -subj "$2" -out "$1.pem" \
    -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign,cRLSign'
}
leaf() { # name, authority, subject, extensions
  openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$work/$1.key"
  openssl req -new -utf8 -key "$work/$1.key" -subj "$3" -out "$work/$1.csr"
  openssl x509 -req -in "$work/$1.csr" -CA "$2.pem" -CAkey "$work/$2.key" -days $days -out "$work/$1.crt" \
    -extfile <(printf '%s\n' "$4") 2>/dev/null
  cat "$work/$1.key" "$work/$1.crt" "$2.pem" >"$1.pem"
}

authority authority '/O=Zabra/CN=Test authority'
authority stranger-authority '/O=Somebody else/CN=Other authority'
names='subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1'
leaf server authority '/O=Zabra/CN=localhost' "$names"
leaf server-next authority '/O=Zabra/CN=localhost' "$names"
leaf elsewhere authority '/O=Zabra/CN=elsewhere.example' 'subjectAltName=DNS:elsewhere.example'
leaf alice authority '/C=DE/O=Zabra, Inc./OU=Tests/CN=alice' \
  'subjectAltName=URI:urn:zabra:(alice;tests),email:alice@zabra.example,DNS:alice.example,IP:10.0.0.7'
leaf odd authority '/DC=example/UID=u7/emailAddress=odd@zabra.example/OU=a+CN= #1 <"ü;=, ' 'basicConstraints=CA:FALSE'
leaf stranger stranger-authority '/O=Somebody else/CN=stranger' 'basicConstraints=CA:FALSE'

openssl pkcs8 -topk8 -in "$work/alice.key" -passout pass:secret -out "$work/alice-locked.key"
cat "$work/alice-locked.key" "$work/alice.crt" >alice-locked.pem
openssl pkcs12 -export -in server.pem -out server.p12 -passout pass:secret -name server
openssl pkcs12 -export -in alice.pem -out alice.p12 -passout pass:secret -name alice
openssl pkcs12 -export -in server.pem -out server-3des.p12 -passout pass:secret -name server \
  -keypbe PBE-SHA1-3DES -certpbe PBE-SHA1-3DES -macalg sha1
openssl pkcs12 -export -legacy -in server.pem -out server-rc2.p12 -passout pass:secret -name server
rm -f authority.p12 server.jks
keytool -importcert -noprompt -alias authority -file authority.pem -keystore authority.p12 -storetype PKCS12 -storepass secret 2>/dev/null
keytool -importkeystore -noprompt -srckeystore server.p12 -srcstoretype PKCS12 -srcstorepass secret \
  -destkeystore server.jks -deststoretype JKS -deststorepass secret -destkeypass secret 2>/dev/null

# An authority that has revoked a certificate, and its lists: of now, and of a time that is over.
authority revoking-authority '/O=Zabra/CN=Revoking authority'
leaf kept revoking-authority '/O=Zabra/CN=kept' "$names"
leaf revoked revoking-authority '/O=Zabra/CN=revoked' 'basicConstraints=CA:FALSE'
: >"$work/index" && echo 01 >"$work/number"
cat >"$work/ca.cnf" <<CONFIG
[ca]
default_ca = it
[it]
database = $work/index
crlnumber = $work/number
serial = $work/number
default_md = sha256
CONFIG
revoking=(openssl ca -config "$work/ca.cnf" -keyfile "$work/revoking-authority.key" -cert revoking-authority.pem)
"${revoking[@]}" -gencrl -crldays $days -out empty.crl 2>/dev/null
"${revoking[@]}" -revoke "$work/revoked.crt" 2>/dev/null
"${revoking[@]}" -gencrl -crldays $days -out revoking.crl 2>/dev/null
"${revoking[@]}" -gencrl -crl_lastupdate 20200101000000Z -crl_nextupdate 20200102000000Z -out over.crl 2>/dev/null

# Certificates that a client must refuse: one that is over, one that begins in the year 2100, one for clients alone, one that has
# signed itself, and one without the authority that has signed it.
authority faulty-authority '/O=Zabra/CN=Authority of faulty certificates'
leaf client-only faulty-authority '/O=Zabra/CN=client-only' "$names
extendedKeyUsage=clientAuth"
at=(openssl ca -batch -notext -config "$work/ca.cnf" -keyfile "$work/faulty-authority.key" -cert faulty-authority.pem
  -outdir "$work" -policy any)
printf '[any]\ncommonName = supplied\n' >>"$work/ca.cnf"
printf '%s\n' "$names" >"$work/names"
dated() { # name, first day, last day
  leaf "$1" faulty-authority "/CN=$1" "$names"
  "${at[@]}" -extfile "$work/names" -startdate "$2" -enddate "$3" -in "$work/$1.csr" -out "$work/$1.crt" 2>/dev/null
  cat "$work/$1.key" "$work/$1.crt" faulty-authority.pem >"$1.pem"
}
dated expired 20200101000000Z 20200102000000Z
dated early 21000101000000Z 21100101000000Z
openssl req -x509 -new -key "$work/client-only.key" -days $days -subj '/CN=self-signed' -out "$work/self-signed.crt" -addext "$names"
cat "$work/client-only.key" "$work/self-signed.crt" >self-signed.pem
leaf unchained faulty-authority '/CN=unchained' "$names"
cat "$work/unchained.key" "$work/unchained.crt" >unchained.pem

# Certificates with a short key, and with a signature that can be forged.
authority weak-authority '/O=Zabra/CN=Authority of weak certificates'
weak() { # name, digest, options for the key
  openssl genpkey "${@:3}" -out "$work/$1.key" 2>/dev/null
  openssl req -new -key "$work/$1.key" -subj "/CN=$1" -out "$work/$1.csr"
  openssl x509 -req "-$2" -in "$work/$1.csr" -CA weak-authority.pem -CAkey "$work/weak-authority.key" -days $days \
    -out "$work/$1.crt" -extfile "$work/names" 2>/dev/null
  cat "$work/$1.key" "$work/$1.crt" weak-authority.pem >"$1.pem"
}
weak weak-key sha256 -algorithm RSA -pkeyopt rsa_keygen_bits:1024
weak weak-hash sha1 -algorithm EC -pkeyopt ec_paramgen_curve:P-256
rm weak-authority.pem
