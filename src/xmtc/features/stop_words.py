"""Stop words: articles, pronouns, prepositions, conjunctions and auxiliary verbs, in lower case, by language."""

from __future__ import annotations

STOP_WORDS = {
    "da": """
        ad af aldrig alle alt altid at blev blive bliver da de dem den denne der deres det dette dig din disse dog du
        efter eller en end er et flere for fordi fra før ganske gennem gør ham han hans har havde hele hende hendes her
        hos hun hvad hvem hver hvilken hvis hvor hvordan hvornår i ikke ind ingen intet jeg jer kan kom kunne man mange
        med meget mellem men mig min mod må ned noget nogle nu når og også om op os over på sig sin skal skulle som så
        sådan thi til ud uden under var ved vi vil ville vor være været
    """,
    "de": """
        aber als also am an auch auf aus bei beim bin bis bist da dabei dadurch dafür dagegen daher damit danach dann
        daran darauf daraus darf darin darum darunter das dass davon davor dazu dein deine dem den denen denn der deren
        des deshalb dessen dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen
        einer eines er es etwa etwas euch euer für gegen gewesen habe haben hat hatte hatten hier hin hinter ich ihm ihn
        ihnen ihr ihre ihrem ihren ihrer ihres im in indem ins ist ja jede jedem jeden jeder jedes jedoch jene jener
        jetzt kann kein keine keinem keinen keiner können könnte man mehr mein meine mich mir mit muss müssen nach
        nachdem nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seines seit selbst sich sie
        sind so solche soll sollen sollte sondern sonst sowie um und uns unser unsere unter vom von vor wann war waren
        warum was weil weiter welche welchem welchen welcher welches wenn wer werde werden wie wieder will wir wird wo
        wobei wodurch worden wurde wurden während würde würden zu zum zur zwar zwischen über
    """,
    "en": """
        about above after again against all also am an and any are as at be because been before being below between both
        but by can could did do does doing down during each either few for from further had has have having he her here
        hers herself him himself his how if in into is it its itself just may me might more most must my myself neither
        no nor not of off on once only or other our ours ourselves out over own same shall she should so some such than
        that the their theirs them themselves then there these they this those through to too under until up upon us
        very was we were what when where whether which while who whom whose why will with within without would you your
        yours yourself yourselves
    """,
    "es": """
        al algo algunas algunos ante antes aquel aquella aquellas aquellos aquí así aun aunque cada como con contra cual
        cuales cuando cuya cuyo cómo de del desde donde durante el ella ellas ellos en entre era eran eres es esa esas
        ese eso esos esta estaba estado estamos estar estas este esto estos está están fue fueron ha haber había habían
        han hasta hay la las le les lo los me mi mientras mis muchas mucho muchos muy más mí nada ni no nos nosotros
        nuestra nuestro nuestros otra otras otro otros para pero poco por porque pues que quien quienes qué se sea sean
        según ser si sido sin sino sobre son su sus sí también tan tanto te tiene tienen toda todas todo todos tras tu
        tus un una unas uno unos usted ustedes vosotros ya él
    """,
    "fi": """
        ei eikä eivät eli ellei emme en ennemmin ennen entä enää et ette ettei että he heidän heidät heille heistä hän
        häneen hänelle hänen hänestä hänet ja jo joiden joihin joille joissa joista joita joka jokainen jolla jolle
        jolloin jolta jonka jos joskus jossa josta jota jotka jotta juuri kaikki kanssa keskellä koska koskaan kuin
        kuinka kuitenkin kuka kun kunnes kyllä lisäksi me meidän meille meistä mihin miksi mikä mikäli milloin minkä
        minun minut minä missä mistä mitä mitään molemmat mukaan mutta myös ne niiden niihin niille niin niissä niistä
        niitä no noin nuo nyt näiden näin näissä näistä näitä nämä ole olemme olen olet olette oli olimme olin olisi
        olisivat olit olivat olla olleet ollut on ovat poikki se sekä sellainen sen siellä sieltä siihen siinä siis
        siitä sille silloin sillä sinne sinun sinut sinä sitten sitä tai te teidän teille teistä tuo tuon tällä tämä
        tämän tässä tästä tätä vaan vai vaikka varten vasta vielä voi voidaan voivat yli ympäri
    """,
    "fr": """
        afin ai aient ainsi alors au aucun aucune aura auraient aurait auront aussi autre autres aux avaient avait avant
        avec avez avoir avons ayant car ce ceci cela celle celles celui ces cet cette ceux chaque chez comme comment
        contre dans de depuis des doit donc dont du durant elle elles en encore entre est et eu eux faire fait fut ici
        il ils je jusqu la le les leur leurs lors lorsque lui là ma mais me mes moi moins mon même mêmes ne ni nos notre
        nous on ont ou où par parce pas pendant peu peut peuvent plus plusieurs pour pourquoi puis quand que quel quelle
        quelles quelque quelques quels qui quoi sa sans se selon sera seraient serait seront ses si soi soient soit son
        sont sous suis sur ta tandis te tel telle telles tels tes toi ton tous tout toute toutes très tu un une vers vos
        votre vous étaient était étant été être
    """,
    "it": """
        abbia abbiamo ad agli ai al alcune alcuni alla alle allo allora altra altre altri altro anche ancora avere aveva
        avevano avrebbe che chi ci ciò coi col come con contro cosa così cui da dagli dai dal dalla dalle dallo degli
        dei del dell della delle dello dentro di dopo dove durante ed egli era erano essa esse essere essi fa fino fra
        fu furono già gli ha hai hanno ho il in infatti io la le lei li lo loro lui ma me mentre mi mia mie miei mio
        molta molte molti molto ne negli nei nel nell nella nelle nello nessun nessuna noi non nostra nostro né ogni
        oltre oppure per perché però più poco poi presso prima può qua qualche quale quali quando quanto quasi quella
        quelle quelli quello questa queste questi questo qui quindi sarebbe sarà se secondo sei sempre senza si sia
        siamo siano sono sopra sotto sta stata state stati stato su sua sue sugli sui sul sulla sulle sullo suo suoi
        tale tali tra tu tutta tutte tutti tutto un una uno verso vi voi vostro è
    """,
    "nl": """
        aan al alle allen als alsof andere anders ben bij binnen bovendien daar daarbij daarmee daarna daarom daarvan
        dan dat de deze die dit doch doen door dus een eens elk elke en er eraan erbij ermee ervan ge geen geweest had
        hadden heb hebben heeft hem hen het hier hij hoe hun ieder iedere iemand iets ik in is ja je jij jou jouw jullie
        kan kon konden kunnen maar me meer men met mij mijn moest moet moeten na naar nadat niemand niet niets nog nu of
        om omdat onder ons onze ook op over per reeds sinds sommige te tegen terwijl toch toen tot tussen u uit uw van
        vanaf veel via voor vooral voordat waar waarbij waarin waarom wanneer want waren was wat we wel welke werd
        werden wie wij wil worden wordt zal ze zelf zich zij zijn zo zoals zodat zonder zou zouden
    """,
    "no": """
        alle andre at av bare begge ble blei bli blir blitt både da de deg dei deim dem den denne der dere deres det
        dette di din disse ditt du då eg ein eit eller elles en enn er et ett etter for fordi fra før ha hadde han hans
        har hennar henne hennes her hjå ho hun hva hvem hver hvilken hvis hvor hvordan hvorfor ikke ikkje ingen inn
        innen inni ja jeg kan kom korleis kun kunne kva kvar kven kvifor man mange me med medan meg mellom men mer min
        mine mitt mot mye må ned nei no noe noen noko nokon nokre nå når og også om opp oss over på samme seg selv si
        sia sidan siden sin sine sitt skal skulle slik som så til under ut uten var ved vere verte vi vil ville vore
        vort vår være vært å
    """,
    "pt": """
        ainda algum alguma algumas alguns além ambos ante antes ao aos apenas após aquela aquelas aquele aqueles aquilo
        as assim até cada com como contra cuja cujo da daquele das de dela delas dele deles depois desde dessa desse
        desta deste do dos durante ela elas ele eles em embora enquanto entre era eram essa essas esse esses esta estas
        estava este estes está estão eu foi for foram haja havia há isso isto já lhe lhes logo mais mas me menos mesma
        mesmas mesmo mesmos meu meus minha minhas muita muitas muito muitos na nas nem nessa nesse nesta neste no nos
        nossa nossas nosso nossos num numa nunca não nós onde os ou outra outras outro outros para pela pelas pelo pelos
        pois por porque portanto porém pouca pouco quais qual qualquer quando quanto que quem se segundo seja sejam sem
        sempre sendo ser será serão seu seus sido sob sobre sua suas são só tal também tanto te tem tendo ter teu teve
        toda todas todo todos tu tua tudo têm um uma umas uns você vocês vos à às é
    """,
    "sv": """
        alla allt alltid andra att av bara blev bli blir blivit både bör de dem den denna deras dess dessa det detta dig
        din dina dit ditt dock du där därför då efter eftersom ej eller en enligt er era ert ett flera från för före
        genom ha hade han hans har henne hennes hon honom hos hur här i icke in ingen inget inom inte ja jag kan kommer
        kunde kunna man med medan mellan men mer mera mig min mina mitt mot mycket måste ned nej ni nog nu när någon
        något några och också om oss på redan samma samt sedan sen sig sin sina sitt själv ska skall skulle som så sådan
        sådana sådant till trots under upp ur ut utan vad var vara varför varit varje varken vars vart vem vi vid vilka
        vilken vilket vill än är även åt över
    """,
}
