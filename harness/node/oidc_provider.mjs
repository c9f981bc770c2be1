// OpenID Connect providers over https on loopback, for tests. The arguments are the folder where oidc-provider is
// installed, and the port of this process: POST starts a provider, DELETE of its port as path stops it. The body of POST
// has its settings: issuer, port, certificate, key, jwks, clients, audiences, claims, and people and redirect_uri (a
// client at which people sign in, by a form that takes any name and password).
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:https';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const [folder, port] = process.argv.slice(2);
const entry = pathToFileURL(`${folder}/node_modules/oidc-provider/lib/index.js`).href;
const { Provider } = await import(entry);
const servers = new Map();

function start(given, done) {
  const clients = given.clients.map((id) => ({
    client_id: id,
    client_secret: 'secret',
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
  }));
  if (given.redirect_uri) {
    clients.push({ client_id: given.people, client_secret: 'secret', redirect_uris: [given.redirect_uri] });
  }
  const provider = new Provider(given.issuer, {
    clients,
    claims: { openid: ['sub', ...Object.keys(given.claims)] },
    conformIdTokenClaims: false,
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, ...given.claims }) }),
    jwks: given.jwks,
    extraTokenClaims: () => given.claims,
    ttl: { ClientCredentials: 600 },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: Boolean(given.redirect_uri) },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => Object.keys(given.audiences)[0], // for clients that name none
        getResourceServerInfo: (_context, resource) => ({
          scope: '',
          audience: resource,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: given.audiences[resource] } },
        }),
      },
    },
  });
  const files = { cert: readFileSync(given.certificate), key: readFileSync(given.key) };
  servers.set(`/${given.port}`, createServer(files, provider.callback()).listen(given.port, '127.0.0.1', done));
}

createHttpServer(async (request, response) => {
  const done = () => response.end();
  if (request.method === 'POST') {
    start(JSON.parse(await text(request)), done);
  } else if (request.method === 'DELETE') {
    servers.get(request.url).close(done);
    servers.get(request.url).closeAllConnections();
  } else {
    done();
  }
}).listen(port, '127.0.0.1');
